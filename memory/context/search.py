"""Searches messages and facts with one vector of the query."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar
from uuid import UUID

from memory.conf import FACT_FLOOR, NEAR_FACT_FLOOR, NEAR_FACTS
from memory.embedding.embedder import embed
from memory.facts import LongTermMemory
from memory.models import MemoryEntry
from memory.recall import RecallResult, recall
from memory.recall.policy import RecallPolicy
from memory.text.changes import newer_first
from memory.text.lexical import words

MAX_WORDS_OF_FRAGMENT: Final = 3
MAX_WORDS_OF_FOLLOW_UP: Final = 10
MAX_TURNS_BEFORE: Final = 3
MAX_CHARACTERS_BEFORE: Final = 300
_WORD: Final = re.compile(r"\w+")
# English, German, French and Spanish.
_PRONOUNS: Final = re.compile(
    r"it|its|that|this|these|those|they|them|their|he|him|his|she|her|there|ones?"
    r"|es|das|dies|diese|davon|dafür|damit|er|ihn|ihm|sie|ihr|ihnen|dort"
    r"|ça|cela|il|elle|ils|elles|lui|leur|eux|en|eso|esto|ello|él|ella|ellos|ellas|allí"
)


class Scored(Protocol):
    """An entry that may have a cosine similarity."""

    @property
    def score(self) -> float | None: ...


T = TypeVar("T", bound=Scored)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The results by kind, best first; None for a kind that was not searched.

    Messages are ordered by their probability, facts by their cosine. The two cannot be compared.
    """

    messages: RecallResult | None
    facts: list[MemoryEntry] | None


def is_follow_up(text: str) -> bool:
    """Return whether a message is short and has a pronoun, or has few words, as in “Why?”."""
    spaced = _WORD.findall(text.casefold())
    is_short = len(spaced) <= MAX_WORDS_OF_FOLLOW_UP and any(map(_PRONOUNS.fullmatch, spaced))
    # Scripts without spaces have several words in a run of letters.
    return is_short or 0 < len(words(text)) <= MAX_WORDS_OF_FRAGMENT


def with_turn_before(query: str, turns: Sequence[Mapping[str, Any]]) -> str:
    """Return the text to search for a message: a follow-up after the user's turn before.

    If that is a follow-up too, the turn before it comes first; MAX_TURNS_BEFORE turns at most.
    """
    texts = [query]
    before = [turn["content"] for turn in turns if turn["role"] == "user"]
    for content in reversed(before[-MAX_TURNS_BEFORE:]):
        if is_follow_up(texts[0]):
            texts.insert(0, content[:MAX_CHARACTERS_BEFORE])
    return " ".join(texts)


def relevant_facts(
    facts: Sequence[T],
    *,
    floor: float = FACT_FLOOR,
    near_floor: float = NEAR_FACT_FLOOR,
) -> list[T]:
    """Return the facts that are similar enough to the query, and those without a score.

    Args:
        facts: the found facts, nearest first.
        floor: least cosine similarity of a fact, from -1 to 1.
        near_floor: the least of the NEAR_FACTS nearest.
    """
    return [
        fact
        for place, fact in enumerate(facts)
        if fact.score is None
        or fact.score >= floor
        or (place < NEAR_FACTS and fact.score >= near_floor)
    ]


def search_memory(
    tenant_id: UUID,
    user_id: str,
    query: str,
    *,
    agent_id: UUID | None,
    policy: RecallPolicy | None,
    facts: int,
    gate: bool,
    shared: bool,
    at: datetime | None = None,
    filters: Mapping[str, Any] | None = None,
    query_embedding: Sequence[float] | None = None,
) -> SearchResult:
    """Search messages and facts with one vector of the query.

    Args:
        agent_id: the agent; None: facts of all agents, and no messages.
        policy: the policy of the recall; None: messages are not searched.
        facts: the maximum number of facts; 0: none are searched.
        gate: leave out facts below the floor, see `relevant_facts`.
        shared: include facts about no user.
        at: the state at this time.
        filters: conditions on the metadata.
        query_embedding: the vector of `query`, if the caller has it.
    """
    vector = query_embedding or embed([query], is_query=True)[0]
    messages = entries = None
    if policy is not None and agent_id is not None:
        messages = recall(
            tenant_id,
            agent_id,
            user_id,
            query,
            policy=policy,
            at=at,
            filters=filters,
            query_embedding=vector,
        )
        # Recall ranks by a score that is not shown; people and programs read the probability.
        shown = sorted(messages.hits, key=lambda hit: hit.probability, reverse=True)
        places = {hit.message_id: place for place, hit in enumerate(shown)}
        replaced = {
            place: places[hit.replaced_by]
            for place, hit in enumerate(shown)
            if hit.replaced_by in places
        }
        in_order = newer_first(range(len(shown)), replaced)
        messages = replace(messages, hits=tuple(shown[place] for place in in_order))
    if facts:
        entries = LongTermMemory().search(
            tenant_id,
            vector,
            facts,
            agent_id,
            user_id=user_id,
            shared=shared,
            filters=filters,
            at=at,
        )
        if gate:
            entries = relevant_facts(entries)
    return SearchResult(messages, entries)
