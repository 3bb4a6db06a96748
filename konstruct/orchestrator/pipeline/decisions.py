"""The possible decisions about a message. `respond.decide` returns one, `write` applies it."""

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
    """A reply that is not stored yet.

    `prompt` is None for fixed texts, such as the notice of an escalation.
    """

    agent: Agent
    content: str
    prompt: Prompt | None = None
    usage: Mapping[str, int] | None = None
    """Numbers of tokens, as the language model reports them."""
    finish_reason: str = ""
    """Why the language model ended the text: "stop", "length" or "content_filter"; or ""."""

    @classmethod
    def from_completion(cls, completion: Completion, agent: Agent, prompt: Prompt) -> Self:
        """Return the draft of a language model's answer to the prompt."""
        return cls(agent, completion.text, prompt, completion.usage, completion.finish_reason)


@dataclass(frozen=True, slots=True)
class Escalate:
    """Escalate the thread to a person."""

    opened_by: OpenedBy
    reason: str


@dataclass(frozen=True, slots=True)
class HandOver:
    """Hand the thread over to another agent."""

    from_agent: Agent
    to_agent: UUID
    reason: str


@dataclass(frozen=True, slots=True)
class HandBack:
    """Hand the thread back to its previous agent."""

    from_agent: Agent


@dataclass(frozen=True, slots=True)
class DecideToolCall:
    """Approve or deny a tool call, and confirm it to the user."""

    agent: Agent
    consent: Consent


@dataclass(frozen=True, slots=True)
class AskModel:
    """Ask the agent's language model for the reply."""

    agent: Agent


class Hold(Enum):
    """Keep workers from the message until it is released."""

    FOR_PERSON = "a person answers in its thread"
    FOR_TOOL_CALLS = "its tool calls wait for consent, or for the program whose tools they are"


Decision = Draft | Escalate | HandOver | HandBack | DecideToolCall | AskModel | Hold


def escalation_notice(snapshot: Snapshot) -> Draft:
    """Return the reply that tells the user that a person will answer."""
    return Draft(snapshot.thread_agent, escalations.NOTICE)
