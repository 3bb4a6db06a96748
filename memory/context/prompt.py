"""A prompt: its parts, the parts that fit into the budget, and the reasons to omit others."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, Final, TypeVar
from uuid import UUID

from memory.context import chat, tokens, working
from memory.recall import Cut, FactHit, Hit, RecallResult, service
from tenants.naming import as_uuid

T = TypeVar("T")

# Why a memory that a reranker has scored is left out.
BELOW_MINIMUM: Final = "below the reranker's minimum"

# The shares of the budget by the sections of a prompt.
SHARES: dict[chat.SectionName, str] = {
    "system": "system_prompt",
    "memory": "relevant_context",
    "session": "session_history",
    "task": "task_and_buffer",
}


@dataclass(frozen=True, slots=True)
class PromptFact:
    """A fact that a search has found."""

    content: str
    score: float | None = None
    """Score of the search; greater is better. None: the search gives no scores."""
    memory_id: UUID | str | None = None
    probability: float | None = None
    """The calibrated probability that it is relevant. None: it was found by its score alone."""
    quote: str = ""
    """Words of the best message of its evidence."""
    said_at: datetime | None = None
    """When that message was sent."""
    message_ids: tuple[UUID, ...] = ()
    """The messages of its evidence, which it replaces."""
    since: datetime | None = None
    """The start of its validity."""

    @classmethod
    def from_entry(cls, entry: Any) -> "PromptFact":
        """Return a fact from text, or from a mapping or an object with a `content`."""
        since = chat.attribute_of(entry, "valid_from")
        return cls(
            chat.text_of(entry),
            chat.score_of(entry),
            chat.attribute_of(entry, "memory_id"),
            since=since if isinstance(since, datetime) else None,
        )

    @classmethod
    def from_hit(cls, hit: FactHit) -> "PromptFact":
        """Return a fact that recall has found."""
        names = ("content", "memory_id", "probability", "quote", "said_at", "message_ids")
        return cls(score=hit.similarity, **{name: getattr(hit, name) for name in names})


@dataclass(frozen=True, slots=True)
class PromptItem:
    """One memory of a prompt: a fact, or a recalled turn."""

    line: str
    """The list item in the prompt."""
    fact: PromptFact | None = None
    message_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Reranking:
    """The scores of a reranker for the memories of a prompt."""

    model: str
    """Name of the reranker."""
    scores: tuple[float, ...] = ()
    """By the positions of `PromptParts.searched`; later ones have no score and stay behind."""
    min_score: float | None = None
    """Memories with a lower score are left out; None: none are."""
    problem: str = ""
    """Why there are no scores, so that the order of the recall stays."""
    milliseconds: float = 0.0

    def ranked(self, items: Sequence[T]) -> list[tuple[T, float]]:
        """Return the items that have a score, best first."""
        return sorted(zip(items, self.scores, strict=False), key=lambda pair: -pair[1])

    def kept(self, items: Sequence[T]) -> list[T]:
        """Return the items by their scores, without those below the minimum, and then the rest."""
        lowest = -math.inf if self.min_score is None else self.min_score
        kept = [item for item, score in self.ranked(items) if score >= lowest]
        return [*kept, *items[len(self.scores) :]]


@dataclass(frozen=True, slots=True)
class PromptParts:
    """The parts of a prompt, before they are fitted into the budget."""

    task: tokens.Task
    session_messages: list[dict[str, Any]]
    memories: list[PromptItem]
    """The facts and recalled turns, alternating, most relevant first."""
    facts: list[PromptFact]
    below_floor: list[PromptFact]
    """Facts below the floor: too different from the task to be included."""
    recalled: RecallResult
    instructions: str = ""
    """Text of the system message with the instructions of an application; may be empty."""
    zone: tzinfo = UTC
    """The time zone of the user, in which the prompt has times."""
    always_count: int = 0
    """The number of memories at the beginning that no search has found."""
    reranking: Reranking | None = None
    reranked: tuple[tuple[PromptItem, float], ...] = ()
    """The memories with a reranker's scores, best first, also those that it leaves out."""

    def rerank(self, reranking: Reranking) -> "PromptParts":
        """Return the parts with the memories in the order of a reranker."""
        always, searched = (self.memories[: self.always_count], self.memories[self.always_count :])
        memories = [*always, *reranking.kept(searched)]
        ranked = tuple(reranking.ranked(searched))
        return replace(self, memories=memories, reranking=reranking, reranked=ranked)

    @property
    def searched(self) -> list[str]:
        """The texts of the memories that were searched for, most relevant first."""
        return [chat.list_item_text(line) for line in self.lines[self.always_count :]]

    @property
    def refused(self) -> list[PromptItem]:
        """The memories that a reranker leaves out."""
        return [item for item, _ in self.reranked if item not in self.memories]

    @property
    def lines(self) -> list[str]:
        """The memories as lines of the prompt."""
        return [memory.line for memory in self.memories]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt within its budget, with the sources of its parts."""

    gathered: PromptParts
    fitted: working.WorkingContext
    shares: dict[chat.SectionName, int]
    sent: Sequence[Mapping[str, Any]] | None = None
    """The messages as they are sent; None: those of `chat_sections`."""
    own_texts: tuple[str, ...] = ()
    """The texts of the system prompt that no person and no program has written."""

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        """The messages for the language model."""
        if self.sent is not None:
            return list(self.sent)
        return list(chat.flatten(self._sections()))

    @property
    def texts(self) -> list[str]:
        """The memories of the prompt as texts, without the marks of list items."""
        return [chat.list_item_text(line) for line in self.fitted.memories]

    @property
    def max_system_tokens(self) -> int:
        """The maximum number of tokens of the system prompt's text."""
        return self.shares["system"] - working.MESSAGE_OVERHEAD_TOKENS

    @property
    def source_ids(self) -> list[UUID]:
        """The ids of the messages and facts in the prompt, in its order; not the task's."""
        ids: list[Any] = [turn_source(turn) for turn in self.fitted.messages]
        for memory in self.included:
            ids.append(memory.message_id)
            if memory.fact is not None:
                ids += [memory.fact.memory_id, *memory.fact.message_ids]
        return list(dict.fromkeys(filter(None, map(as_uuid, ids))))

    @property
    def included(self) -> list[PromptItem]:
        """The memories in the prompt; the last one may be cut."""
        return self.gathered.memories[: len(self.fitted.memories)]

    def trace(self) -> dict[str, Any]:
        """Return everything that a RecallEvent stores, as JSON: see its fields."""
        included = self.included
        included_facts = _facts_of(included)
        refused = self.gathered.refused
        refused_facts = _facts_of(refused)
        hits, cut = _split_hits(self.gathered.recalled, included, refused)
        return {
            **replace(self.gathered.recalled, hits=hits, cut=cut).trace(self.fitted.memories),
            "facts": [
                *(
                    _fact_trace(
                        fact,
                        "" if fact in included_facts else _reason(is_refused=fact in refused_facts),
                    )
                    for fact in self.gathered.facts
                ),
                *(_fact_trace(fact, "below the floor") for fact in self.gathered.below_floor),
            ],
            "reranker": self._reranker_trace(),
            "prompt": self._prompt_trace(),
        }

    def _reranker_trace(self) -> dict[str, Any] | None:
        """Return the order of the reranker as JSON; None without one."""
        gathered = self.gathered
        if gathered.reranking is None:
            return None
        ids = [
            (memory.message_id if memory.fact is None else memory.fact.memory_id, score)
            for memory, score in gathered.reranked
        ]
        values = asdict(gathered.reranking)
        values.pop("scores")
        return {**values, "ranked": [{"id": str(pk), "score": score} for pk, score in ids if pk]}

    def _sections(self) -> dict[chat.SectionName, list[chat.ChatMessage]]:
        fitted = self.fitted
        return chat.chat_sections(
            fitted.system_prompt,
            fitted.context,
            fitted.messages,
            fitted.task,
            instructions=self.gathered.instructions,
        )

    def _prompt_trace(self) -> dict[str, Any]:
        """Return the sent messages of each section with their tokens, as JSON."""
        fitted = self.fitted
        own = self._sections()
        sections: Mapping[chat.SectionName, Sequence[Mapping[str, Any]]] = own
        sizes: dict[str, int] = dict(fitted.token_usage.items())  # type: ignore[arg-type]
        shares = {**self.shares}
        shares["system"] += reserved_tokens(self.gathered.instructions)
        for name in ("system", "total"):
            sizes[name] += tokens.count(self.gathered.instructions)
        if self.sent is not None and self.messages != chat.flatten(own):
            sections = chat.split_sections(self.sent, self.gathered.instructions)
            sizes = {
                name: sum(tokens.count(chat.text_of(message)) for message in messages)
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


def turn_source(turn: Mapping[str, Any]) -> UUID | None:
    """Return the id of the message of a turn. After a handover, its `message_id` is a copy's."""
    return as_uuid(turn.get("source_id") or turn.get("message_id"))


def reserved_tokens(instructions: str) -> int:
    """Return the tokens of a system message with instructions; 0 without instructions."""
    return tokens.count(instructions) + working.MESSAGE_OVERHEAD_TOKENS if instructions else 0


def _facts_of(memories: Iterable[PromptItem]) -> list[PromptFact]:
    return [memory.fact for memory in memories if memory.fact is not None]


def _message_ids(memories: Iterable[PromptItem]) -> set[UUID | None]:
    """Return the messages of memories, and those of the evidence of facts among them."""
    of_facts = (pk for fact in _facts_of(memories) for pk in fact.message_ids)
    return {*of_facts, *(memory.message_id for memory in memories)}


def _split_hits(
    recalled: RecallResult, included: Sequence[PromptItem], refused: Sequence[PromptItem]
) -> tuple[tuple[Hit, ...], tuple[Cut, ...]]:
    """Return the hits in the prompt, and the others: those that a fact of the prompt replaces,
    those that a reranker refuses, and those over the budget.
    """
    included_ids = {memory.message_id for memory in included}
    given, refused_ids = _message_ids(included), _message_ids(refused)
    over = (
        Cut(
            hit.message_id,
            "given as a fact"
            if hit.message_id in given
            else _reason(is_refused=hit.message_id in refused_ids),
            *(hit.score, hit.probability, hit.gate_value, hit.channels),
        )
        for hit in recalled.hits
        if hit.message_id not in included_ids
    )
    hits = tuple(hit for hit in recalled.hits if hit.message_id in included_ids)
    return hits, (*over, *recalled.cut)


def _reason(*, is_refused: bool) -> service.Reason:
    return BELOW_MINIMUM if is_refused else "over the budget"


def _fact_trace(fact: PromptFact, reason: str) -> dict[str, Any]:
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
