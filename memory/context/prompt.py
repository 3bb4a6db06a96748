"""The parts of a prompt, the parts that fit into it, and the reasons for leaving others out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from memory.context import tokens
from memory.context.chat import (
    ChatMessage,
    SectionName,
    attribute_of,
    chat_sections,
    flattened,
    score_of,
    sections_of,
    text_of,
    text_of_item,
)
from memory.context.task import Task
from memory.context.working import MESSAGE_OVERHEAD, WorkingContext
from memory.recall import Cut, FactHit, Hit, RecallResult

# The shares of the budget by the sections of a prompt.
SHARES: dict[SectionName, str] = {
    "system": "system_prompt",
    "memory": "relevant_context",
    "session": "session_history",
    "task": "task_and_buffer",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that a search of any memory has found."""

    content: str
    score: float | None = None
    """The score that the search gave; greater is better. None: the search gives no scores."""
    memory_id: UUID | str | None = None
    probability: float | None = None
    """That it is relevant. None: it was found by its score alone."""
    quote: str = ""
    """The words of a message that it rests on."""
    said_at: datetime | None = None
    """When that message was sent."""
    message_ids: tuple[UUID, ...] = ()
    """The messages that it rests on, and replaces."""

    @classmethod
    def of(cls, entry: Any) -> "Fact":
        """Return a fact from text, or from a mapping or an object with a `content`."""
        return cls(text_of(entry), score_of(entry), attribute_of(entry, "memory_id"))

    @classmethod
    def recalled(cls, hit: FactHit) -> "Fact":
        """Return a fact that recall has found."""
        return cls(
            content=hit.content,
            score=hit.similarity,
            memory_id=hit.memory_id,
            probability=hit.probability,
            quote=hit.quote,
            said_at=hit.said_at,
            message_ids=hit.message_ids,
        )


@dataclass(frozen=True, slots=True)
class Memory:
    """One item of a prompt: a fact, or a recalled turn."""

    line: str
    """As a prompt has it."""
    fact: Fact | None = None
    message_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Gathered:
    """The parts of a prompt, before they are fitted into the budget."""

    task: Task
    session_messages: list[dict[str, Any]]
    memories: list[Memory]
    """The recalled facts and turns, in turns, most relevant first."""
    facts: list[Fact]
    below_floor: list[Fact]
    """Facts that were found and are too different from the task to be included."""
    recalled: RecallResult
    instructions: str = ""
    """The system message with the instructions of an application, whole; "" without."""

    @property
    def lines(self) -> list[str]:
        """The memories as lines of the prompt."""
        return [memory.line for memory in self.memories]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt within its budget, with the sources of its parts."""

    gathered: Gathered
    fitted: WorkingContext
    shares: dict[SectionName, int]
    built: Sequence[Mapping[str, Any]] | None = None
    """The messages that another function has built from these parts; None: those of `chat`."""

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        """The messages for the language model."""
        if self.built is not None:
            return list(self.built)
        return list(flattened(self._own_sections()))

    @property
    def texts(self) -> list[str]:
        """The facts and recalled turns of the prompt, without list marks."""
        return [text_of_item(line) for line in self.fitted.memories]

    @property
    def max_system_tokens(self) -> int:
        """The maximum number of tokens of the system prompt's text."""
        return self.shares["system"] - MESSAGE_OVERHEAD

    def sent_as(self, built: Sequence[Mapping[str, Any]]) -> "Prompt":
        """Return the same prompt with messages that were built from its parts."""
        return replace(self, built=built)

    @property
    def included(self) -> list[Memory]:
        """The memories in the prompt; the last one may be cut."""
        return self.gathered.memories[: len(self.fitted.memories)]

    def trace(self) -> dict[str, Any]:
        """Return everything that a RecallEvent stores, as JSON: see its fields."""
        included = self.included
        included_facts = [memory.fact for memory in included if memory.fact is not None]
        hits, cut = _split_hits(
            self.gathered.recalled,
            {memory.message_id for memory in included},
            {message_id for fact in included_facts for message_id in fact.message_ids},
        )
        return {
            **replace(self.gathered.recalled, hits=hits, cut=cut).trace(self.fitted.memories),
            "facts": [
                *(
                    _fact(fact, "" if fact in included_facts else "over the budget")
                    for fact in self.gathered.facts
                ),
                *(_fact(fact, "below the floor") for fact in self.gathered.below_floor),
            ],
            "prompt": self._prompt(),
        }

    def _own_sections(self) -> dict[SectionName, list[ChatMessage]]:
        fitted = self.fitted
        return chat_sections(
            fitted.system_prompt,
            fitted.context,
            fitted.messages,
            fitted.task,
            instructions=self.gathered.instructions,
        )

    def _prompt(self) -> dict[str, Any]:
        """Return the prompt as it is sent, by section, with its tokens."""
        fitted = self.fitted
        sections: Mapping[SectionName, Sequence[Mapping[str, Any]]] = self._own_sections()
        sizes: dict[str, int] = dict(fitted.token_usage.items())  # type: ignore[arg-type]
        shares = {**self.shares}
        shares["system"] += reserved_tokens(self.gathered.instructions)
        for name in ("system", "total"):
            sizes[name] += tokens.count(self.gathered.instructions)
        if self.built is not None and self.messages != flattened(self._own_sections()):
            sections = sections_of(self.built, self.gathered.instructions)
            sizes = {
                name: sum(tokens.count(text_of(message)) for message in messages)
                for name, messages in sections.items()
            }
            sizes["total"] = sum(sizes.values())
        left_out = {"memory": fitted.memories_left_out, "session": fitted.messages_left_out}
        return {
            "model_tier": fitted.model_tier,
            "budget": fitted.budget,
            "tokens": sizes["total"],
            "sections": [
                {
                    "name": name,
                    "tokens": sizes[name],
                    "share": shares[name],
                    "left_out": left_out.get(name, 0),
                    "truncated": name in fitted.truncated,
                    "cut": list(fitted.task_cut) if name == "task" else [],
                    "messages": list(messages),
                }
                for name, messages in sections.items()
            ],
        }


def reserved_tokens(instructions: str) -> int:
    """Return the tokens of a system message with instructions; 0 without instructions."""
    return tokens.count(instructions) + MESSAGE_OVERHEAD if instructions else 0


def _split_hits(
    recalled: RecallResult, included_ids: set[UUID | None], replaced: set[UUID]
) -> tuple[tuple[Hit, ...], tuple[Cut, ...]]:
    """Return the hits in the prompt, and the others.

    First come those that a fact replaces, then those over the budget.
    """
    over = (
        Cut(
            hit.message_id,
            "given as a fact" if hit.message_id in replaced else "over the budget",
            hit.score,
            hit.probability,
            hit.gate_value,
            hit.channels,
        )
        for hit in recalled.hits
        if hit.message_id not in included_ids
    )
    hits = tuple(hit for hit in recalled.hits if hit.message_id in included_ids)
    return hits, (*over, *recalled.cut)


def _fact(fact: Fact, reason: str) -> dict[str, Any]:
    """Return a fact as JSON; `reason` is why the prompt does not have it."""
    return {
        "memory_id": None if fact.memory_id is None else str(fact.memory_id),
        "content": fact.content,
        "score": fact.score,
        "reason": reason,
        "probability": fact.probability,
        "quote": fact.quote,
        "said_at": fact.said_at and fact.said_at.isoformat(),
        "message_ids": [str(message_id) for message_id in fact.message_ids],
    }
