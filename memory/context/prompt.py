"""What was gathered for a prompt, what of it the prompt holds, and why the rest is not in it."""

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from memory.context.chat import ChatMessage, SectionName, chat_sections, flattened
from memory.context.task import Task
from memory.context.working import WorkingContext
from memory.models.facts import MemoryEntry
from memory.recall import Cut, Hit, RecallResult

# The names of the budget's shares, by those of the sections that a prompt is made of.
SHARES: dict[SectionName, str] = {
    "system": "system_prompt",
    "memory": "relevant_context",
    "session": "session_history",
    "task": "task_and_buffer",
}


@dataclass(frozen=True, slots=True)
class Memory:
    """One item that a prompt may tell: a fact, or a turn that was recalled."""

    line: str
    """As a prompt has it."""
    fact: MemoryEntry | None = None
    message_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Gathered:
    """What there is to say, before it is fitted into a prompt."""

    task: Task
    session_messages: list[dict[str, Any]]
    memories: list[Memory]
    """What was found, most relevant first: facts and turns by turns."""
    facts: list[MemoryEntry]
    unlike: list[MemoryEntry]
    """Facts that were found and are too little like the task to be told."""
    recalled: RecallResult

    @property
    def lines(self) -> list[str]:
        """The memories as a prompt has them."""
        return [memory.line for memory in self.memories]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt within its budget, and where everything in it comes from."""

    gathered: Gathered
    fitted: WorkingContext
    shares: dict[SectionName, int]

    @property
    def messages(self) -> list[ChatMessage]:
        """What the language model is sent."""
        return flattened(self._sections())

    @property
    def told(self) -> list[Memory]:
        """The memories that it has room for; the last of them may be cut."""
        return self.gathered.memories[: len(self.fitted.memories)]

    def trace(self) -> dict[str, Any]:
        """Everything that a RecallEvent keeps, as JSON: see its fields."""
        told = self.told
        hits, cut = _parted(self.gathered.recalled, {memory.message_id for memory in told})
        told_facts = {memory.fact.memory_id for memory in told if memory.fact is not None}
        return {
            **replace(self.gathered.recalled, hits=hits, cut=cut).trace(self.fitted.memories),
            "facts": [
                *(
                    _fact(fact, "" if fact.memory_id in told_facts else "over the budget")
                    for fact in self.gathered.facts
                ),
                *(_fact(fact, "below the floor") for fact in self.gathered.unlike),
            ],
            "prompt": self._prompt(),
        }

    def _sections(self) -> dict[SectionName, list[ChatMessage]]:
        fitted = self.fitted
        return chat_sections(fitted.system_prompt, fitted.context, fitted.messages, fitted.task)

    def _prompt(self) -> dict[str, Any]:
        """The prompt as it is sent, section by section, with its tokens."""
        fitted = self.fitted
        left_out = {"memory": fitted.memories_left_out, "session": fitted.messages_left_out}
        return {
            "model_tier": fitted.model_tier,
            "budget": fitted.budget,
            "tokens": fitted.token_usage["total"],
            "sections": [
                {
                    "name": name,
                    "tokens": fitted.token_usage[name],
                    "share": self.shares[name],
                    "left_out": left_out.get(name, 0),
                    "truncated": name in fitted.truncated,
                    "cut": list(fitted.task_cut) if name == "task" else [],
                    "messages": messages,
                }
                for name, messages in self._sections().items()
            ],
        }


def _parted(
    recalled: RecallResult, told: set[UUID | None]
) -> tuple[tuple[Hit, ...], tuple[Cut, ...]]:
    """The hits that the prompt tells, and all that it does not: first those over the budget."""
    over = (
        Cut(hit.message_id, "over the budget", hit.score, hit.probability, hit.channels)
        for hit in recalled.hits
        if hit.message_id not in told
    )
    hits = tuple(hit for hit in recalled.hits if hit.message_id in told)
    return hits, (*over, *recalled.cut)


def _fact(fact: MemoryEntry, reason: str) -> dict[str, Any]:
    """A fact as JSON; `reason` says why the prompt does not tell it."""
    return {
        "memory_id": str(fact.memory_id),
        "content": fact.content,
        "score": fact.score,
        "reason": reason,
    }
