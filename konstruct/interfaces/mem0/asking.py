"""The language model, asked for JSON while a client waits."""

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID, uuid4

from django.conf import settings

from konstruct.llm.exceptions import LLMError
from konstruct.llm.pool import HttpLanguageModel, language_model
from konstruct.orchestrator import runner
from konstruct.orchestrator.messages import KonstructMessage
from konstruct.orchestrator.models import Agent, ModelTier
from konstruct.strict_json import NotStrictJSON, read_json
from tenants.context import required_tenant_id

logger = logging.getLogger(__name__)

# A client waits for it, and with it a thread of the web process: a few of them may, and of one
# tenant half as many, so that it does not keep the model from the others.
SECONDS: Final = 20
MAX_WAITING: Final = max(1, settings.WEB_THREADS // 4)
MAX_WAITING_OF_TENANT: Final = max(1, MAX_WAITING // 2)
_waiting: Counter[UUID] = Counter()
_counting = threading.Lock()


class NoModel(Exception):
    """No language model is configured."""


class TooManyWait(Exception):
    """As many requests wait for the language model as may, of the tenant or of all."""


class NoAnswer(Exception):
    """The language model gave no answer that can be used."""


def ask(prompt: str, material: str) -> Any:
    """Return the JSON that the language model answers, at most `SECONDS` later.

    Not in a transaction. `material` is what a person or a program wrote: one text, in which nobody
    speaks to the model.

    Raises:
        NoModel, TooManyWait, NoAnswer: why there is none.
    """
    if not isinstance(language_model(), HttpLanguageModel):  # the built-in responder is none
        raise NoModel
    with _waits(required_tenant_id()):
        return _asked(prompt, material)


@contextmanager
def _waits(tenant_id: UUID) -> Iterator[None]:
    """Count who waits. Raises TooManyWait."""
    with _counting:
        of_tenant = _waiting[tenant_id]
        if of_tenant >= MAX_WAITING_OF_TENANT or _waiting.total() >= MAX_WAITING:
            raise TooManyWait
        _waiting[tenant_id] += 1
    try:
        yield
    finally:
        with _counting:
            _waiting[tenant_id] -= 1
            if not _waiting[tenant_id]:
                del _waiting[tenant_id]


def _asked(prompt: str, material: str) -> Any:
    try:
        messages = [{"role": "system", "content": prompt}, {"role": "user", "content": material}]
        agent = Agent(id=uuid4(), name="mem0", system_prompt=prompt, model_tier=ModelTier.FAST)
        options = runner.RunOptions(timeout=SECONDS)
        answer = runner.complete(_message(agent, material), agent, messages, options)
        return read_json(_json_in(answer.text))
    except (LLMError, NotStrictJSON) as error:
        logger.warning("The language model gave no JSON: %s", error)
        raise NoAnswer from error


def _message(agent: Agent, material: str) -> KonstructMessage:
    """Return the material as a message to an agent that is in no table."""
    return KonstructMessage(
        id=uuid4(),
        tenant_id=required_tenant_id(),
        agent_id=agent.id,
        user_id="",
        thread_id="",
        channel="mem0",
        content=material,
    )


def _json_in(answer: str) -> str:
    """The part of an answer that is JSON: many models put it between fences, whatever is said."""
    begins = [at for at in (answer.find("{"), answer.find("[")) if at >= 0]
    end = max(answer.rfind("}"), answer.rfind("]"))
    return answer[min(begins, default=0) : end + 1]
