"""Scores the messages of a scope. Pure: arrays in, the best messages out.

A message that asks the same as the question is an `echo`: near to it, but no answer; words that a
turn takes over from the echo before it do not count. A message that asks nearly the same in other
words loses a part of its score: two questions are nearer to each other than to their answer.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memory.recall.evidence import NOTHING_KNOWN, Flags, Known, Pieces, Turns
from memory.recall.policy import RecallWeights
from memory.recall.query_analysis import Question
from memory.text.lexical import (
    CONTEXT_WEIGHTS,
    SPEAKER_AND_DATE_LEXEMES,
    date_lexemes,
    frequency_of,
    lexeme_hash,
    saturated,
)

# The rarity of words is computed as if this many messages without them existed: otherwise every
# word of a new conversation would be common.
PRIOR_MESSAGES = 300
# Parameters of BM25 for the words of a question, compared with K1 and B of the stored weights:
# length counts more, since words of a long turn co-occur by accident, and rarity counts more.
CONTEXT_K1, CONTEXT_B = 0.4, 0.8
RARITY_POWER = 1.5
# The conversation and the neighbouring turns count more for a message if turns are short: fully up
# to 20 words a turn, half at 100, a quarter at 260.
CONTEXT_WORDS = 60
FULL_CONTEXT_WORDS = 20
# A message scores higher the longer it is, up to this many words.
MAX_LENGTH_WORDS = 60
# A message that repeats the question, in up to this many times the words plus a number, only asks:
# it is no answer, however similar the two are.
ECHO_WORDS = (2, 3)
# A message that only asks has at least this similarity to a question only if it asks nearly the
# same: of the questions with evidence in LoCoMo's dialogues 0-3 none has a cosine above .55. The
# cost ranks a statement that answers above it. R@1 .488 -> .489, R@5 .756 -> .757, R@10 .815 ->
# .815.
NEAR_QUESTION_COSINE = 0.6
NEAR_QUESTION_COST = 0.5
# The number of best messages that represent a conversation.
SESSION_BEST = 3

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""Postgres'."""
_DAY = 24 * 60 * 60 * 10**6

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]


class Found(NamedTuple):
    """One of the best messages, with the value of each feature before its weight."""

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
    """The question names its speaker."""
    addressed: bool
    """True: by the person to whom "I" or "you" in the question refers."""
    words: int
    has_time: bool
    echo: bool
    repeats_question: bool
    """It asks nearly the same question: NEAR_QUESTION_COST is subtracted from its score."""
    cited: bool
    """A fact rests on it."""
    fact: float
    """The best cosine of the facts that rest on it; 0 without one."""
    from_fact: float
    """The part of the score that comes from the fact."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best messages of a scope, best first, and features of the question in it."""

    found: list[Found]
    messages: int
    unknown: float
    """Share of the question's rarity that is in no message."""
    unknown_name: bool
    """It has a name that is in no message."""
    mean_cosine: float
    """Of the whole scope, or of the distant part of a large one."""


@dataclass(frozen=True, slots=True)
class WordWeights:
    """The features of each message from the words of a question and from its speaker."""

    shared: Floats
    """Words in common with the question, each by its rarity over the most that there can be."""
    coverage: Floats
    """Share of the question's rarity."""
    echo: Flags
    asks: Flags
    """The message only asks a question, and so does the query."""
    by_name: Flags
    addressed: Flags
    prior: Floats
    """Of the score: length, subject and time."""
    by_id: "_Index"
    """Positions of the messages, by both halves of their ids in one."""
    unknown: float
    unknown_name: bool


def weigh_words(turns: Turns, question: Question, weights: RecallWeights) -> WordWeights:
    """Return the features of the messages that do not need their vectors."""
    terms = _weigh_terms(turns, question)
    echo = _echoes(question, terms, turns)
    echoed, _ = _previous_turn(np.ones(len(echo)), turns.session, echo)
    counts = (terms.weight > 0) & (terms.own | ~echoed)
    rarity = max(terms.known + terms.unknown, 1e-9)
    by_name = (turns.subject == np.array(question.names, np.int64)[:, None]).any(axis=0)
    addressed = np.where(turns.by_user, question.names_user, question.names_agent)
    return WordWeights(
        shared=(terms.idf / terms.norm) ** RARITY_POWER @ (terms.weight * counts),
        coverage=terms.idf @ counts / rarity,
        echo=echo,
        asks=turns.asks & question.is_question,
        by_name=by_name,
        addressed=addressed,
        prior=weights.length * np.log1p(np.minimum(turns.words, MAX_LENGTH_WORDS))
        + 2 * weights.subject * (by_name | addressed)
        + weights.time * (turns.has_time & question.asks_when),
        by_id=_Index(_mixed(turns.ids)),
        unknown=terms.unknown / rarity,
        unknown_name=terms.unknown_name,
    )


def rank(
    turns: Turns,
    words: WordWeights,
    pieces: Pieces,
    weights: RecallWeights,
    *,
    echoes_last: bool,
    limit: int,
    known: Known = NOTHING_KNOWN,
) -> Ranking:
    """Return the `limit` best messages, best first; with `echoes_last` echoes follow all others."""
    nearest = _best_cosines(turns, words.by_id, pieces)
    for message_id, cosine_of_rest in known.remaining.items():
        nearest[_is_message(turns, message_id)] = cosine_of_rest
    # A message without words and without a vector of this model has no features.
    is_near = nearest > -np.inf
    weighed = (is_near | (turns.words > 0)) & ~turns.context_only
    if not weighed.any():
        return Ranking([], turns.messages, words.unknown, words.unknown_name, 0.0)
    # Usually all of them; then nothing is copied.
    kept = slice(None) if weighed.all() else np.flatnonzero(weighed)
    counts = ~words.echo
    for message_id in known.excluded:
        counts &= ~_is_message(turns, message_id)
    number, session, speaks = turns.number[kept], turns.session[kept], counts[kept]
    cosine = np.where(is_near, nearest, 0.0)[kept]
    base = cosine + weights.lexical * words.shared[kept]
    far = ~turns.near[kept]

    conversation = _session_best(base, session, speaks)
    conversation = np.where(np.isnan(conversation), base, conversation)
    before, previous = _previous_turn(cosine, session, speaks)
    after, following = _next_turn(base, session, speaks)
    around = (
        weights.session * conversation
        + weights.previous * np.where(before, previous, cosine.mean())
        + weights.following * np.where(after, following, base.mean())
    )
    score = base + words.prior[kept] + _context_weight(turns.words[kept]) * around
    repeats = words.asks[kept] & (cosine >= NEAR_QUESTION_COSINE)
    score -= NEAR_QUESTION_COST * repeats
    fact = np.full(len(score), -np.inf)
    if len(known.cited.ids) and weights.fact:
        fact = _best_cosines(turns, words.by_id, known.cited)[kept]
    is_cited = fact > -np.inf
    fact = np.where(is_cited, fact, 0.0)
    from_fact = weights.fact * fact
    score += from_fact
    best = _best(score, number, words.echo[kept] & echoes_last, limit)
    at = np.flatnonzero(weighed)[best]
    columns = (
        score[best], cosine[best], words.shared[at], words.coverage[at],
        conversation[best], previous[best], following[best],
        words.by_name[at], words.addressed[at], turns.words[at], turns.has_time[at], words.echo[at],
        repeats[best], is_cited[best], fact[best], from_fact[best],
    )  # fmt: skip
    return Ranking(
        _found(turns, at, [column.tolist() for column in columns]),
        turns.messages,
        words.unknown,
        words.unknown_name,
        float((cosine[far] if far.any() else cosine).mean()),
    )


def _context_weight(words: NDArray[np.int32]) -> float:
    """Return the weight of the neighbouring turns, by the number of words in turns."""
    return min(1.0, (CONTEXT_WORDS + FULL_CONTEXT_WORDS) / (CONTEXT_WORDS + float(words.mean())))


def _found(turns: Turns, at: Positions, columns: list[list[Any]]) -> list[Found]:
    messages = zip(
        turns.number[at].tolist(),
        turns.ids[at].tolist(),
        turns.created_at[at].tolist(),
        *columns,
        strict=True,
    )
    return [
        Found(number, UUID(int=high << 64 | low), EPOCH + timedelta(microseconds=moment), *rest)
        for number, (high, low), moment, *rest in messages
    ]


@dataclass(frozen=True, slots=True)
class _Terms:
    """The weights of the question's words in a scope, and in each message."""

    idf: Floats
    """Of each word."""
    said: Flags
    """Of each word: it is one of the question's own."""
    own: Flags
    """Of each word and message: the message holds the word itself."""
    weight: Floats
    """Of each word and message; 0 where the message has no such word."""
    known: float
    """Sum of the idf of the words that some message has."""
    unknown: float
    """Sum of the idf of the words that no message has."""
    unknown_name: bool
    norm: float
    """The idf of a word that no message has, approximately: the highest."""


def _weigh_terms(turns: Turns, question: Question) -> _Terms:
    """Weigh the words by the number of messages that have them."""
    messages = turns.messages + PRIOR_MESSAGES
    asked = sorted(set(question.terms))
    terms = np.array(asked, np.int64)
    said = np.array([term in question.text_terms for term in asked], bool)
    term_of = np.searchsorted(terms, turns.posting_term)
    at = _Index(turns.number).of(turns.posting_number)
    own = np.zeros((len(terms), len(turns.number)), bool)
    own[term_of, at] = True
    weight = _weights_in_context(turns, terms, said, term_of, at)
    counted: NDArray[Any]
    if turns.large:
        counted = np.zeros(len(terms))
        counted[np.searchsorted(terms, turns.counted_term)] = turns.counted
        held = counted > 0
    else:
        counted = own.sum(axis=1)
        held = weight.max(axis=1, initial=0) > 0
    idf = _idf(messages, counted)
    return _Terms(
        idf=idf,
        said=said,
        own=own,
        weight=weight,
        known=float(idf[held].sum()),
        unknown=(len(terms) - int(held.sum())) * float(_idf(messages, 0)),
        unknown_name=not set(terms[held].tolist()).issuperset(question.proper_names),
        norm=math.log1p(messages),
    )


def _weights_in_context(
    turns: Turns, terms: NDArray[np.int64], said: Flags, term_of: Positions, at: Positions
) -> Floats:
    """Return the weight of each word in each message, with the turns before it (BM25F)."""
    length = turns.lexemes.astype(float)
    frequency = np.zeros((len(said), len(length)))
    weight = turns.posting_weight.astype(float)
    frequency[term_of, at] = np.maximum(1, np.rint(frequency_of(weight, length[at])))
    around, spoken = frequency.copy(), length - SPEAKER_AND_DATE_LEXEMES
    spoken_words = said[:, None] * np.maximum(0, frequency - _in_date(terms, turns.created_at))
    for back, share in enumerate(CONTEXT_WEIGHTS, 1):
        same = share * (turns.session[back:] == turns.session[:-back])
        around[:, back:] += same * spoken_words[:, :-back]
        length[back:] += same * spoken[:-back]
    return saturated(around, length, CONTEXT_K1, CONTEXT_B)


def _in_date(terms: NDArray[np.int64], created_at: NDArray[np.int64]) -> Flags:
    """Return whether each word is in the date of each message."""
    days, day_of = np.unique(created_at // _DAY, return_inverse=True)
    dates = np.array([_date_terms(day) for day in days.tolist()], np.int64).reshape(-1, 3)
    found: Flags = np.any(terms[:, None, None] == dates, axis=2)
    return found[:, day_of]


@lru_cache(maxsize=4096)  # eleven years of days
def _date_terms(day: int) -> list[int]:
    return [lexeme_hash(lexeme) for lexeme in date_lexemes(EPOCH + timedelta(days=day))]


def _idf(messages: int, counted: Any) -> Any:
    return np.log1p((messages - counted + 0.5) / (counted + 0.5))


class _Index:
    """Positions of values in a sorted array."""

    def __init__(self, among: NDArray[Any]) -> None:
        self._order = np.argsort(among)
        self._sorted = among[self._order]

    def of(self, sought: NDArray[Any]) -> Positions:
        """Return the position of each value, or its insertion position."""
        found = np.searchsorted(self._sorted, sought)
        return self._order[np.minimum(found, len(self._sorted) - 1)]


def _echoes(question: Question, terms: _Terms, turns: Turns) -> Flags:
    """Return which messages only ask, and ask the same: all words of the question, and few
    others.
    """
    if not (question.is_question and question.text_terms):
        return np.zeros(len(turns.number), bool)
    few_others = turns.words <= ECHO_WORDS[0] * question.words + ECHO_WORDS[1]
    says_all: Flags = np.all(terms.own[terms.said], axis=0)
    return turns.asks & few_others & says_all


def _best_cosines(turns: Turns, by_id: _Index, pieces: Pieces) -> Floats:
    """Return the best cosine of each message's pieces; -inf without pieces."""
    best = np.full(len(turns.ids), -np.inf)
    if len(best):
        at = by_id.of(_mixed(pieces.ids))
        # A message that was written after the turns were read has no position.
        there = turns.ids[at]
        known = (there[:, 0] == pieces.ids[:, 0]) & (there[:, 1] == pieces.ids[:, 1])
        at, cosine = at[known], pieces.cosine[known]
        # Of several pieces of a message, the last assignment counts.
        order = np.argsort(cosine)
        best[at[order]] = cosine[order]
    return best


def _is_message(turns: Turns, message_id: UUID) -> Flags:
    high, low = divmod(message_id.int, 1 << 64)
    found: Flags = (turns.ids[:, 0] == np.uint64(high)) & (turns.ids[:, 1] == np.uint64(low))
    return found


def _mixed(ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a search key from both halves of the ids, which are random."""
    return ids[:, 0] ^ ids[:, 1]


def _continues(session: NDArray[np.int64]) -> Flags:
    """Return whether each turn except the first has the same conversation as the one before."""
    return session[1:] == session[:-1]


def _previous_turn(
    values: Floats, session: NDArray[np.int64], counts: Flags
) -> tuple[Flags, Floats]:
    """Return whether the turn before counts and has the same conversation; its value or 0."""
    there = np.zeros(len(values), bool)
    there[1:] = counts[:-1] & _continues(session)
    moved = np.zeros(len(values))
    moved[1:] = values[:-1]
    return there, moved * there


def _next_turn(values: Floats, session: NDArray[np.int64], counts: Flags) -> tuple[Flags, Floats]:
    """Return whether the turn after counts and has the same conversation; its value or 0."""
    there, moved = _previous_turn(values[::-1], session[::-1], counts[::-1])
    return there[::-1], moved[::-1]


def _session_best(base: Floats, session: NDArray[np.int64], counts: Flags) -> Floats:
    """Return the mean of the best counting turns of each turn's conversation; nan without any."""
    group = np.concatenate(([0], np.cumsum(~_continues(session))))
    groups = np.arange(group[-1] + 1)
    chosen = np.flatnonzero(counts)
    # Sorted by conversation and score: one key takes half the time of two.
    chosen = chosen[np.argsort(group[chosen] * (np.ptp(base) + 1) - base[chosen])]
    starts = np.searchsorted(group[chosen], groups)
    taken = np.minimum(np.bincount(group[chosen], minlength=len(groups)), SESSION_BEST)
    sums = np.concatenate(([0.0], np.cumsum(base[chosen])))
    total = sums[starts + taken] - sums[starts]
    return np.where(taken > 0, total / np.maximum(taken, 1), np.nan)[group]


def _best(score: Floats, number: NDArray[np.int64], last: Flags, limit: int) -> Positions:
    """Return the first `limit` by score: those in `last` at the end, the newer of two equal ones
    first.
    """
    some = np.arange(len(score))
    if limit < len(some):
        key = np.where(last, -np.inf, score)
        some = np.flatnonzero(key >= np.partition(key, -limit)[-limit])
    return some[np.lexsort((-number[some], -score[some], last[some]))][:limit]
