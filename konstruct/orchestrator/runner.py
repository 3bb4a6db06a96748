"""Runs an agent on a message."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from konstruct.orchestrator.builder import Persona, build_messages_with_memory
from konstruct.orchestrator.llm.pool import Tell, language_model
from konstruct.orchestrator.llm.wire import Completion, CompletionRequest


class Runnable(Persona, Protocol):
    """What of an agent a completion needs."""

    @property
    def model(self) -> str: ...

    @property
    def model_tier(self) -> str: ...


class Said(Protocol):
    """What of a message a completion needs."""

    @property
    def content(self) -> str: ...


def run_agent(
    msg: Said, agent: Runnable, messages: Sequence[Mapping[str, str]] | None = None
) -> str:
    """Return the agent's answer to the message.

    Sends `messages` if given, else the agent's system prompt and the message alone. Raises an
    LLMError if the language model gives no usable answer.
    """
    if messages is None:
        messages = build_messages_with_memory(agent, msg.content, [], [])
    return ask(agent, messages).text


def ask(
    agent: Runnable,
    messages: Sequence[Mapping[str, str]],
    tell: Tell | None = None,
    options: Mapping[str, Any] | None = None,
) -> Completion:
    """Return the agent's answer to a prompt; `tell` is told each piece of it as it comes.

    `options` are what is asked of the answer besides, in the words of OpenAI's API. Raises an
    LLMError if the language model gives no usable answer.
    """
    request = CompletionRequest(
        messages, model=agent.model, tier=agent.model_tier, options=options or {}
    )
    return language_model().complete(request, tell)
