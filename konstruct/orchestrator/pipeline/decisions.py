"""The possible decisions about a message, which `write` carries out."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Self
from uuid import UUID

from konstruct.llm.completions import Completion
from konstruct.orchestrator.handoff import escalations
from konstruct.orchestrator.handoff.escalations import OpenedBy
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.pipeline.snapshot import Consent, Snapshot
from memory.context.prompt import Prompt


@dataclass(frozen=True)
class Draft:
    """A reply that is not written yet, with its prompt.

    A reply of the agent without a language model has no prompt.
    """

    agent: Agent
    content: str
    prompt: Prompt | None = None
    usage: Mapping[str, int] | None = None
    """Tokens that the language model has reported."""
    finish_reason: str = ""
    """Why the language model ended it: "stop", "length" or "content_filter"; "" without one."""

    @classmethod
    def of(cls, completion: Completion, agent: Agent, prompt: Prompt) -> Self:
        """Return a language model's answer to the prompt."""
        return cls(agent, completion.text, prompt, completion.usage, completion.finish_reason)


@dataclass(frozen=True, slots=True)
class CallPerson:
    """A person answers in the thread from now on."""

    opened_by: OpenedBy
    reason: str


@dataclass(frozen=True, slots=True)
class PassOn:
    """Another agent answers in the thread from now on."""

    from_agent: Agent
    to_agent: UUID
    reason: str


@dataclass(frozen=True, slots=True)
class HandBack:
    """The agent that had the thread before answers in it again."""

    from_agent: Agent


@dataclass(frozen=True, slots=True)
class ConsentDecided:
    """The user has approved or denied a tool call, and gets a confirmation."""

    agent: Agent
    consent: Consent


@dataclass(frozen=True, slots=True)
class AskModel:
    """The language model answers for the agent."""

    agent: Agent


class Held(Enum):
    """The message waits for a person or a program, and not for a worker."""

    FOR_PERSON = "a person answers in its thread"
    FOR_CALLS = "its tool calls wait for consent, or for the program whose tools they are"


Decision = Draft | CallPerson | PassOn | HandBack | ConsentDecided | AskModel | Held


def notice(snapshot: Snapshot) -> Draft:
    """Return the reply that announces a person."""
    return Draft(snapshot.own_agent, escalations.NOTICE)
