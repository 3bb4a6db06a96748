"""Weighs the messages of a scope against each other. Pure: arrays in, the best out.

A message that asks the same as the question is an `echo`: near to it, and no answer; the words that
a turn has from the echo before it do not count.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memory.evidence import ASKS, BY_NAME, BY_USER, HAS_TIME, NEAR, Evidence
from memory.policy import RecallWeights
from memory.questions import Question

# Words are as rare as if so many other messages, without any of them, had been said before: in the
# first days of a conversation every word would be common, and nothing could be told from anything.
PRIOR_MESSAGES = 300
# Who asks the same again, in so many times the words and so many more, only asks: that answers
# nothing, however near the two questions are.
ECHO_WORDS = (2, 3)
# Of a conversation, so many of the best speak for it.
SESSION_BEST = 3

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""Postgres'."""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Positions = NDArray[np.intp]


class Found(NamedTuple):
    """One of the best, and what every sign said of it, before its weight."""

    number: int
    message_id: UUID
    created_at: datetime
    score: float
    cosine: float
    lexical: float
    coverage: float
    session: float
    previous: float
    following: float
    by_name: bool
    """Said by somebody whom the question names by name."""
    addressed: bool
    """Said by the one whom the question calls "I" or "you"."""
    words: int
    has_time: bool
    echo: bool


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best of a scope, best first, and what is known of the question there."""

    found: list[Found]
    messages: int
    unknown: float
    """Share of the question's rarity that nobody has ever said."""
    unknown_name: bool
    """It has a name that nobody has ever said."""
    mean_cosine: float
    """Of the whole scope, or of what is not near in a large one."""


@dataclass(frozen=True, slots=True)
class _Words:
    """What the question's words are worth in a scope, and in each posting."""

    idf: Floats
    """Of each posting."""
    said: Flags
    """Of each posting: its word is one of the question's own."""
    known: float
    """Of the words that were said, together."""
    unknown: float
    """Of those that were not."""
    unknown_name: bool
    norm: float
    """The most that one word can be worth."""

    @property
    def rarity(self) -> float:
        return max(self.known + self.unknown, 1e-9)


def rank(
    evidence: Evidence, question: Question, weights: RecallWeights, *, echoes_last: bool, limit: int
) -> Ranking:
    """The `limit` best messages, best first; with `echoes_last` those that answer before others."""
    words = _weigh_words(evidence, question)
    number, session = evidence.number, evidence.session
    length, flags = evidence.words, evidence.flags

    at = _positions(evidence.posting_number, number)
    echo = _echoes(question, at[words.said & evidence.posting_own], length, flags)
    echoed, _ = _of_the_turn_before(np.ones(len(echo)), session, echo)
    counts = evidence.posting_own | ~echoed[at]
    idf = words.idf * counts
    lexical = np.bincount(at, evidence.posting_weight * idf, len(number))
    covered = np.bincount(at, idf, len(number))
    nearest = _best_cosines(evidence)

    # A message without words or a vector of this model has nothing to be weighed by.
    kept = np.flatnonzero(~np.isnan(nearest) | (length > 0))
    if not len(kept):
        return Ranking([], evidence.messages, words.unknown / words.rarity, words.unknown_name, 0.0)
    number, session, echo = number[kept], session[kept], echo[kept]
    length, flags = length[kept], flags[kept]
    cosine = np.where(np.isnan(nearest), 0.0, nearest)[kept]
    shared = lexical[kept] / words.norm
    base = cosine + weights.lexical * shared
    far = (flags & NEAR) == 0

    conversation = _session_best(base, session, ~echo)
    conversation = np.where(np.isnan(conversation), base, conversation)
    before, previous = _of_the_turn_before(cosine, session, ~echo)
    after, following = _of_the_turn_after(base, session, ~echo)
    by_name = (flags & BY_NAME) != 0
    addressed = np.where(flags & BY_USER, question.names_user, question.names_agent)
    has_time = (flags & HAS_TIME) != 0
    score = (
        base
        + weights.length * np.log1p(length)
        + 2 * weights.subject * (by_name | addressed)
        + weights.time * has_time
        + weights.session * conversation
        + weights.previous * np.where(before, previous, cosine.mean())
        + weights.following * np.where(after, following, base.mean())
    )
    best = _best(score, number, echo & echoes_last, limit)
    signs = (
        score, cosine, shared, covered[kept] / words.rarity, conversation, previous, following,
        by_name, addressed, length, has_time, echo,
    )  # fmt: skip
    return Ranking(
        _found(evidence, kept[best], [sign[best].tolist() for sign in signs]),
        evidence.messages,
        words.unknown / words.rarity,
        words.unknown_name,
        float((cosine[far] if far.any() else cosine).mean()),
    )


def _found(evidence: Evidence, at: Positions, signs: list[list[Any]]) -> list[Found]:
    messages = zip(
        evidence.number[at].tolist(),
        evidence.ids[at].tolist(),
        evidence.created_at[at].tolist(),
        *signs,
        strict=True,
    )
    return [
        Found(number, UUID(int=high << 64 | low), EPOCH + timedelta(microseconds=moment), *rest)
        for number, (high, low), moment, *rest in messages
    ]


def _weigh_words(evidence: Evidence, question: Question) -> _Words:
    """By how few messages hold them."""
    messages = evidence.messages + PRIOR_MESSAGES
    asked = sorted(set(question.terms))
    terms = np.array(asked, np.int64)
    term_of = np.searchsorted(terms, evidence.posting_term)
    counted: NDArray[Any]
    if evidence.large:
        counted = np.zeros(len(terms))
        counted[np.searchsorted(terms, evidence.counted_term)] = evidence.counted
        held = counted > 0
    else:
        counted = np.bincount(term_of[evidence.posting_own], minlength=len(terms))
        held = np.bincount(term_of, minlength=len(terms)) > 0
    idf = _idf(messages, counted)
    return _Words(
        idf=idf[term_of],
        said=np.array([term in question.said_terms for term in asked], bool)[term_of],
        known=float(idf[held].sum()),
        unknown=(len(terms) - int(held.sum())) * float(_idf(messages, 0)),
        unknown_name=not set(terms[held].tolist()).issuperset(question.proper_names),
        norm=math.log1p(messages),
    )


def _idf(messages: int, counted: Any) -> Any:
    return np.log1p((messages - counted + 0.5) / (counted + 0.5))


def _positions(sought: NDArray[Any], among: NDArray[Any]) -> Positions:
    """Where each stands among all, or where it might, if it does not."""
    order = np.argsort(among)
    found = np.searchsorted(among[order], sought)
    return order[np.minimum(found, len(among) - 1)]


def _echoes(
    question: Question, said_at: Positions, length: NDArray[np.int32], flags: NDArray[np.int32]
) -> Flags:
    """Which messages only ask, and ask the same: all of the question's words, and few others."""
    if not (question.is_question and question.said_terms):
        return np.zeros(len(length), bool)
    asks = ((flags & ASKS) != 0) & (length <= ECHO_WORDS[0] * question.words + ECHO_WORDS[1])
    return asks & (np.bincount(said_at, minlength=len(length)) == len(question.said_terms))


def _best_cosines(evidence: Evidence) -> Floats:
    """Of each message the best of its pieces; nan where it has none."""
    ids, of_pieces = evidence.ids, evidence.piece_ids
    best = np.full(len(ids), -np.inf)
    if len(best):
        at = _positions(_mixed(of_pieces), _mixed(ids))
        # As of a moment, later messages have pieces here and stand nowhere.
        known = (ids[at, 0] == of_pieces[:, 0]) & (ids[at, 1] == of_pieces[:, 1])
        np.maximum.at(best, at[known], evidence.piece_cosine[known])
    return np.where(np.isinf(best), np.nan, best)


def _mixed(ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Both halves in one, by which to look: ids are random."""
    return ids[:, 0] ^ ids[:, 1]


def _continues(session: NDArray[np.int64]) -> Flags:
    """Whether each turn but the first is of the same conversation as the one before."""
    return session[1:] == session[:-1]


def _of_the_turn_before(
    values: Floats, session: NDArray[np.int64], counts: Flags
) -> tuple[Flags, Floats]:
    """Whether the turn before is of the same conversation and counts; its value, 0 if not."""
    there = np.zeros(len(values), bool)
    there[1:] = counts[:-1] & _continues(session)
    moved = np.zeros(len(values))
    moved[1:] = values[:-1]
    return there, moved * there


def _of_the_turn_after(
    values: Floats, session: NDArray[np.int64], counts: Flags
) -> tuple[Flags, Floats]:
    """Whether the turn after is of the same conversation and counts; its value, 0 if not."""
    there, moved = _of_the_turn_before(values[::-1], session[::-1], counts[::-1])
    return there[::-1], moved[::-1]


def _session_best(base: Floats, session: NDArray[np.int64], counts: Flags) -> Floats:
    """Of each turn's conversation, the mean of the best that count; nan where none does."""
    group = np.concatenate(([0], np.cumsum(~_continues(session))))
    groups = np.arange(group[-1] + 1)
    chosen = np.flatnonzero(counts)
    chosen = chosen[np.lexsort((-base[chosen], group[chosen]))]
    starts = np.searchsorted(group[chosen], groups)
    taken = np.minimum(np.bincount(group[chosen], minlength=len(groups)), SESSION_BEST)
    sums = np.concatenate(([0.0], np.cumsum(base[chosen])))
    total = sums[starts + taken] - sums[starts]
    return np.where(taken > 0, total / np.maximum(taken, 1), np.nan)[group]


def _best(score: Floats, number: NDArray[np.int64], last: Flags, limit: int) -> Positions:
    """The first `limit` by score, what is `last` after all others, the newer of two alike first."""
    some = np.arange(len(score))
    if limit < len(some):
        key = np.where(last, -np.inf, score)
        some = np.flatnonzero(key >= np.partition(key, -limit)[-limit])
    return some[np.lexsort((-number[some], -score[some], last[some]))][:limit]
