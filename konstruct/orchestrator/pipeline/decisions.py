"""What can be decided about a message: values that `write` knows how to write."""

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
    """What the agent says, before it is written down, and what it was given to say it.

    What it says by itself, without a language model, has no prompt.
    """

    agent: Agent
    content: str
    prompt: Prompt | None = None
    usage: Mapping[str, int] | None = None
    """Tokens, if the language model has reported them."""
    finish_reason: str = ""
    """Why the language model ended it: "stop", "length" or "content_filter"; "" without one."""

    @classmethod
    def of(cls, completion: Completion, agent: Agent, prompt: Prompt) -> Self:
        """What a language model has answered to the prompt."""
        return cls(agent, completion.text, prompt, completion.usage, completion.finish_reason)


@dataclass(frozen=True, slots=True)
class CallPerson:
    """A person is to answer in the thread from now on."""

    opened_by: OpenedBy
    reason: str


@dataclass(frozen=True, slots=True)
class PassOn:
    """Another agent is to answer in the thread from now on."""

    from_agent: Agent
    to_agent: UUID
    reason: str


@dataclass(frozen=True, slots=True)
class HandBack:
    """The agent that had the thread before is to answer in it again."""

    from_agent: Agent


@dataclass(frozen=True, slots=True)
class Agreed:
    """The user has said yes or no to a tool call, and gets a confirmation."""

    agent: Agent
    consent: Consent


@dataclass(frozen=True, slots=True)
class AskModel:
    """The language model is to answer for the agent."""

    agent: Agent


class Held(Enum):
    """The message is to wait for a person or program, and not for a worker."""

    FOR_PERSON = "a person answers in its thread"
    FOR_CALLS = "its tool calls wait for consent, or for the program whose tools they are"


Decision = Draft | CallPerson | PassOn | HandBack | Agreed | AskModel | Held


def notice(snapshot: Snapshot) -> Draft:
    """Tell the user that a person was asked for."""
    return Draft(snapshot.own_agent, escalations.NOTICE)
