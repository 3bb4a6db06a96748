"""The language model, asked for JSON while a client waits."""

import logging
import threading
from dataclasses import replace
from typing import Any, Final

from django.conf import settings

from konstruct.orchestrator.exceptions import LLMError
from konstruct.orchestrator.llm.pool import HttpLanguageModel, language_model
from konstruct.orchestrator.llm.wire import CompletionRequest
from konstruct.strict_json import NotStrictJSON, read_json

logger = logging.getLogger(__name__)

# A client waits for it, and with it a thread of the web process: a few of them may.
SECONDS: Final = 20
_waiting = threading.BoundedSemaphore(max(1, settings.WEB_THREADS // 4))


class NoModel(Exception):
    """No language model is configured."""


class TooManyWait(Exception):
    """As many requests wait for the language model as may."""


class NoAnswer(Exception):
    """The language model gave no answer that can be used."""


def is_configured() -> bool:
    """Tell whether there is a language model: the built-in responder is none."""
    return isinstance(language_model(), HttpLanguageModel)


def ask(prompt: str, material: str) -> Any:
    """Return the JSON that the language model answers, at most `SECONDS` later.

    Not in a transaction. `material` is what a person or a program wrote: one text, in which nobody
    speaks to the model.

    Raises:
        NoModel, TooManyWait, NoAnswer: why there is none.
    """
    model = language_model()
    if not isinstance(model, HttpLanguageModel):
        raise NoModel
    if not _waiting.acquire(blocking=False):
        raise TooManyWait
    try:
        quick = replace(model, timeout=min(model.timeout, SECONDS))
        messages = [{"role": "system", "content": prompt}, {"role": "user", "content": material}]
        answer = quick.complete(CompletionRequest(messages, model="", tier="fast")).text
        return read_json(_json_in(answer))
    except (LLMError, NotStrictJSON) as error:
        logger.warning("The language model gave no JSON: %s", error)
        raise NoAnswer from error
    finally:
        _waiting.release()


def _json_in(answer: str) -> str:
    """The part of an answer that is JSON: many models put it between fences, whatever is said."""
    begins = [at for at in (answer.find("{"), answer.find("[")) if at >= 0]
    end = max(answer.rfind("}"), answer.rfind("]"))
    return answer[min(begins, default=0) : end + 1]
