"""Scores the messages of a scope. Pure: arrays in, the best messages out.

A message that only repeats the question is an echo: similar, but no answer. Words that a turn
repeats from the echo before it do not count. A message that asks nearly the same in other words
loses a part of its score: two questions are more similar to each other than to their answer.
"""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import regex
from numpy.typing import NDArray

from memory.recall import evidence, policy
from memory.recall.evidence import Flags, Turns
from memory.text import lexical
from memory.text.sentences import count_words, is_question, split_sentences

# Of a pasted page, the beginning and the end are used.
MAX_TERMS = 64

# "How much", "how many", as stemmed: answers do not repeat them.
ASKED_NUMBERS = frozenset(("much", "mani"))

_WORD = regex.compile(r"\p{L}[\p{L}\p{M}\p{N}'’]*")
# A question for a time, in English.
_WHEN = regex.compile(
    r"\bwhen\b|\b(?:what|which) (?:date|day|month|year|time)\b|\bhow long ago\b", regex.IGNORECASE
)


def proper_names(text: str, latin: lexical.Language = lexical.ENGLISH) -> list[str]:
    """Return the lexemes of words that look like names: capitalized, and not at the beginning of a
    sentence. In a language that capitalizes every noun, no word looks like a name.
    """
    if latin.capitalizes_nouns:
        return []
    names = [
        lexical.lexemes(word, latin)[:1]
        for sentence in split_sentences(text)
        for word in _WORD.findall(sentence)[1:]
        if word[0].isupper() and not word.isupper()
    ]
    return list(dict.fromkeys(name for lexemes in names for name in lexemes))


@dataclass(frozen=True, slots=True)
class Question:
    """An analysed query."""

    terms: list[int]
    """Hashes of its lexemes, each once, and of SPEAKER_TERMS of the roles that it mentions."""
    alternatives: dict[int, int]
    """Hashes of other lexemes that messages may have instead, each with one of `terms`."""
    text_terms: list[int]
    """The hashes of its words alone."""
    names: list[int]
    """Hashes of its words that may be names of speakers."""
    mentions_user: bool
    """It has a pronoun of the user, such as "I" or "my"."""
    mentions_agent: bool
    """It has a pronoun of the agent, such as "you" or "your"."""
    asks_when: bool
    is_question: bool
    languages: frozenset[str]
    """Codes of the languages of its words."""
    proper_names: list[int]
    """Hashes of its lexemes that are capitalized like names."""
    words: int

    @classmethod
    def of(cls, query: str, latin: lexical.Language | None = None) -> "Question":
        """Analyse a query, which may be any text.

        Args:
            query: the text.
            latin: the language of its Latin words; by default that of its frequent words.
        """
        words = lexical.analyse(query, latin)
        word_of = lexical.alternatives(words)
        lexemes = list(dict.fromkeys(word_of.values()))
        lexemes = [lexeme for lexeme in lexemes if lexeme not in ASKED_NUMBERS]
        if len(lexemes) > MAX_TERMS:
            lexemes = lexemes[: MAX_TERMS // 2] + lexemes[-MAX_TERMS // 2 :]
        text_terms = [lexical.lexeme_hash(lexeme) for lexeme in lexemes]
        mentions_agent = any(word.text in word.language.agent for word in words)
        mentions_user = any(word.text in word.language.user for word in words) or (
            not mentions_agent and any(word.language.drops_subject for word in words)
        )
        speaker_terms = [
            lexical.SPEAKER_TERMS[role]
            for role, is_mentioned in (("user", mentions_user), ("assistant", mentions_agent))
            if is_mentioned
        ]
        names = list(dict.fromkeys(word.text for word in words if word.lexeme))
        return cls(
            terms=[*text_terms, *map(lexical.lexeme_hash, speaker_terms)],
            alternatives={
                lexical.lexeme_hash(lexeme): lexical.lexeme_hash(word)
                for lexeme, word in word_of.items()
                if lexeme != word and word in lexemes
            },
            text_terms=text_terms,
            names=[lexical.lexeme_hash(name) for name in names[:MAX_TERMS]],
            mentions_user=mentions_user,
            mentions_agent=mentions_agent,
            asks_when=bool(_WHEN.search(query))
            or any(word.text in word.language.when for word in words),
            is_question=is_question(query),
            languages=frozenset(word.language.code for word in words),
            proper_names=[
                lexical.lexeme_hash(n)
                for n in proper_names(query, lexical.language_of_latin_words(words))[:MAX_TERMS]
            ],
            words=count_words(query),
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
# The best of a few turns are most of them, and say nothing about the others: a conversation counts
# fully from the second number of turns on, and not at all up to the first. Of LoCoMo's 100
# conversations the shortest has 13 turns. docs/measurements.md has the effect in other languages.
SESSION_TURNS = (8, 13)

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]


class ScoredMessage(NamedTuple):
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
    names_speaker: bool
    """Whether the question has the name of its speaker."""
    is_addressed: bool
    """Whether its speaker is the person to whom "I" or "you" in the question refers."""
    words: int
    has_time: bool
    is_echo: bool
    repeats_question: bool
    """Whether it asks nearly the same: NEAR_QUESTION_COST is subtracted from its score."""
    is_cited: bool
    """Whether it has evidence of a fact."""
    fact: float
    """The best cosine of the facts with evidence in it; 0 without one."""
    from_fact: float
    """The part of the score that comes from the fact."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best messages of a scope, best first, and features of the question in it."""

    best: list[ScoredMessage]
    messages: int
    unknown: float
    """Share of the question's rarity in words that no message has."""
    unknown_name: bool
    """Whether the question has a name that is in no message."""
    mean_cosine: float
    """Mean cosine of the whole scope; of a large one, without its candidates."""


@dataclass(frozen=True, slots=True)
class WordWeights:
    """The features of each message from the words of a question and from its speaker."""

    shared: Floats
    """Weight of the words in common with the question, by their rarity."""
    coverage: Floats
    """Share of the question's rarity in these words."""
    is_echo: Flags
    asks: Flags
    """Whether the message only asks a question, and the query is one."""
    names_speaker: Flags
    is_addressed: Flags
    prior: Floats
    """The part of the score for length, subject and time."""
    by_id: "_Index"
    """Positions of the messages by `_id_keys`."""
    unknown: float
    unknown_name: bool


def weigh_words(turns: Turns, question: Question, weights: policy.RecallWeights) -> WordWeights:
    """Return the features of the messages that do not need their vectors."""
    terms = _weigh_terms(turns, question)
    echo = _echoes(question, terms, turns)
    echoed, _ = _previous_turn(np.ones(len(echo)), turns.session, echo)
    counts = (terms.weight > 0) & (terms.contains | ~echoed)
    rarity = max(terms.known_idf + terms.unknown_idf, 1e-9)
    by_name = (turns.subject == np.array(question.names, np.int64)[:, None]).any(axis=0)
    addressed = np.where(turns.by_user, question.mentions_user, question.mentions_agent)
    return WordWeights(
        shared=(terms.idf / terms.max_idf) ** RARITY_POWER @ (terms.weight * counts),
        coverage=terms.idf @ counts / rarity,
        is_echo=echo,
        asks=turns.asks & question.is_question,
        names_speaker=by_name,
        is_addressed=addressed,
        prior=weights.length * np.log1p(np.minimum(turns.words, MAX_LENGTH_WORDS))
        + 2 * weights.subject * (by_name | addressed)
        + weights.time * (turns.has_time & question.asks_when),
        by_id=_Index(_id_keys(turns.ids)),
        unknown=terms.unknown_idf / rarity,
        unknown_name=terms.unknown_name,
    )


def rank(
    turns: Turns,
    words: WordWeights,
    pieces: evidence.PieceCosines,
    weights: policy.RecallWeights,
    *,
    echoes_last: bool,
    limit: int,
    cosine_weight: float = 1.0,
    known: evidence.FactsAndExclusions = evidence.NO_FACTS_OR_EXCLUSIONS,
) -> Ranking:
    """Return the `limit` best messages, best first; with `echoes_last` echoes follow all others.

    `cosine_weight` is that of the embedding model.
    """
    nearest = _best_cosines(turns, words.by_id, pieces)
    for message_id, cosine_of_rest in known.remaining_cosines.items():
        nearest[_is_message(turns, message_id)] = cosine_of_rest
    # A message without words and without a vector of this model has no features.
    has_vector = nearest > -np.inf
    has_features = (has_vector | (turns.words > 0)) & ~turns.is_context_only
    if not has_features.any():
        return Ranking([], turns.messages, words.unknown, words.unknown_name, 0.0)
    # Usually all of them; then nothing is copied.
    kept = slice(None) if has_features.all() else np.flatnonzero(has_features)
    counts = ~words.is_echo
    for message_id in known.excluded:
        counts &= ~_is_message(turns, message_id)
    cosine = np.where(has_vector, nearest, 0.0)[kept]
    weighted = cosine_weight * cosine
    base = weighted + weights.lexical * words.shared[kept]
    context = _weigh_context(
        weighted, base, turns.session[kept], counts[kept], weights, is_large=turns.is_large
    )
    score = base + words.prior[kept] + _context_weight(turns.words[kept]) * context.total
    repeats = words.asks[kept] & (cosine >= NEAR_QUESTION_COSINE)
    score -= NEAR_QUESTION_COST * repeats
    fact = np.full(len(score), -np.inf)
    if len(known.fact_cosines.ids) and weights.fact:
        fact = _best_cosines(turns, words.by_id, known.fact_cosines)[kept]
    is_cited = fact > -np.inf
    fact = np.where(is_cited, fact, 0.0)
    from_fact = weights.fact * cosine_weight * fact
    score += from_fact
    best = _best(score, turns.number[kept], words.is_echo[kept] & echoes_last, limit)
    at = np.flatnonzero(has_features)[best]
    # In the order of the fields of ScoredMessage.
    columns = (
        turns.number[at], turns.ids[at], turns.created_at[at],
        score[best], cosine[best], words.shared[at], words.coverage[at],
        context.session[best], context.previous[best], context.following[best],
        words.names_speaker[at], words.is_addressed[at], turns.words[at], turns.has_time[at],
        words.is_echo[at], repeats[best], is_cited[best], fact[best], from_fact[best],
    )  # fmt: skip
    messages = [
        ScoredMessage(
            number,
            UUID(int=high << 64 | low),
            evidence.EPOCH + timedelta(microseconds=created_at),
            *features,
        )
        for number, (high, low), created_at, *features in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]
    is_beside = ~turns.is_candidate[kept]
    return Ranking(
        messages,
        turns.messages,
        words.unknown,
        words.unknown_name,
        float((cosine[is_beside] if is_beside.any() else cosine).mean()),
    )


class _Context(NamedTuple):
    """The features of each message from its session and the turns beside it."""

    session: Floats
    previous: Floats
    following: Floats
    total: Floats
    """Their weighted sum."""


def _weigh_context(
    cosine: Floats,
    base: Floats,
    session: NDArray[np.int64],
    counts: Flags,
    weights: policy.RecallWeights,
    *,
    is_large: bool,
) -> _Context:
    """Return the features from the session and the turns beside each message.

    Args:
        cosine: the cosine of each message.
        base: the score of each message without its context.
        session: the session of each message.
        counts: whether a message counts for others: it is neither an echo nor excluded.
        weights: the weights of the sum.
        is_large: whether these are only candidates and the turns around them.
    """
    session_best = _session_best(base, session, counts)
    session_best = np.where(np.isnan(session_best), base, session_best)
    if not is_large:  # of which whole conversations are not read
        _, turn_of, turns = np.unique(session, return_inverse=True, return_counts=True)
        share = np.interp(turns[turn_of], SESSION_TURNS, (0, 1))
        session_best = share * session_best + (1 - share) * base.mean()
    has_previous, previous = _previous_turn(cosine, session, counts)
    has_next, following = _next_turn(base, session, counts)
    total = (
        weights.session * session_best
        + weights.previous * np.where(has_previous, previous, cosine.mean())
        + weights.following * np.where(has_next, following, base.mean())
    )
    return _Context(session_best, previous, following, total)


def _context_weight(words: NDArray[np.int32]) -> float:
    """Return the weight of the context: less, the more words the turns have on average."""
    return min(1.0, (CONTEXT_WORDS + FULL_CONTEXT_WORDS) / (CONTEXT_WORDS + float(words.mean())))


@dataclass(frozen=True, slots=True)
class _Terms:
    """The weights of the question's words in a scope, and in each message."""

    idf: Floats
    """For each word, its inverse document frequency."""
    is_in_text: Flags
    """For each word, whether it is in the question's text, and not one of SPEAKER_TERMS."""
    contains: Flags
    """For each word and message, whether the message itself has the word."""
    weight: Floats
    """For each word and message, its weight with the turns before; 0 if they lack the word."""
    known_idf: float
    """Sum of the idf of the words in at least one message."""
    unknown_idf: float
    """Sum of the idf of the words in no message."""
    unknown_name: bool
    max_idf: float
    """The idf of a word in no message, approximately."""


def _weigh_terms(turns: Turns, question: Question) -> _Terms:
    """Weigh the words by the number of messages that have them."""
    messages = turns.messages + PRIOR_MESSAGES
    sorted_terms = sorted(set(question.terms))
    terms = np.array(sorted_terms, np.int64)
    is_in_text = np.array([term in question.text_terms for term in sorted_terms], bool)
    term_of = np.searchsorted(terms, _replaced(turns.posting_term, question.alternatives))
    at = _Index(turns.number).positions_of(turns.posting_number)
    contains = np.zeros((len(terms), len(turns.number)), bool)
    contains[term_of, at] = True
    weight = _weights_in_context(turns, terms, is_in_text, term_of, at)
    frequency: NDArray[Any]
    if turns.is_large:
        frequency = np.zeros(len(terms))
        asked = _replaced(turns.frequency_term, question.alternatives)
        np.add.at(frequency, np.searchsorted(terms, asked), turns.document_frequency)
        is_known = frequency > 0
    else:
        frequency = contains.sum(axis=1)
        is_known = weight.max(axis=1, initial=0) > 0
    idf = _idf(messages, frequency)
    return _Terms(
        idf=idf,
        is_in_text=is_in_text,
        contains=contains,
        weight=weight,
        known_idf=float(idf[is_known].sum()),
        unknown_idf=(len(terms) - int(is_known.sum())) * float(_idf(messages, 0)),
        unknown_name=not set(terms[is_known].tolist()).issuperset(question.proper_names),
        max_idf=math.log1p(messages),
    )


def _replaced(terms: NDArray[np.int64], replacements: dict[int, int]) -> NDArray[np.int64]:
    """Return terms, with other terms for some of them."""
    if not replacements:
        return terms
    return np.array([replacements.get(term, term) for term in terms.tolist()], np.int64)


def _weights_in_context(
    turns: Turns, terms: NDArray[np.int64], is_in_text: Flags, term_of: Positions, at: Positions
) -> Floats:
    """Return the weight of each word in each message, with the turns before it (BM25F)."""
    length = turns.lexemes.astype(float)
    frequency = np.zeros((len(terms), len(length)))
    weight = turns.posting_weight.astype(float)
    frequency[term_of, at] = np.maximum(1, np.rint(lexical.frequency_of(weight, length[at])))
    in_context, text_length = frequency.copy(), length - lexical.SPEAKER_AND_DATE_LEXEMES
    is_date = _is_in_date(terms, turns.day)
    text_frequency = is_in_text[:, None] * np.maximum(0, frequency - is_date)
    for distance, weight_of_turn in enumerate(lexical.CONTEXT_WEIGHTS, 1):
        share = weight_of_turn * (turns.session[distance:] == turns.session[:-distance])
        in_context[:, distance:] += share * text_frequency[:, :-distance]
        length[distance:] += share * text_length[:-distance]
    return lexical.bm25_weight(in_context, length, CONTEXT_K1, CONTEXT_B)


def _is_in_date(terms: NDArray[np.int64], day: NDArray[np.int64]) -> Flags:
    """Return whether each word is in the date of each message."""
    days, day_of = np.unique(day, return_inverse=True)
    dates = np.array([_date_terms(day) for day in days.tolist()], np.int64).reshape(-1, 3)
    is_in_day: Flags = np.any(terms[:, None, None] == dates, axis=2)
    return is_in_day[:, day_of]


@lru_cache(maxsize=4096)  # eleven years of days
def _date_terms(day: int) -> list[int]:
    return [
        lexical.lexeme_hash(lexeme)
        for lexeme in lexical.date_lexemes(evidence.EPOCH + timedelta(days=day))
    ]


def _idf(messages: int, frequency: Any) -> Any:
    return np.log1p((messages - frequency + 0.5) / (frequency + 0.5))


class _Index:
    """Finds the positions of values in an array."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._order = np.argsort(array)
        self._sorted = array[self._order]

    def positions_of(self, values: NDArray[Any]) -> Positions:
        """Return the position of each value; any position for a value that is not in the array."""
        insertion = np.searchsorted(self._sorted, values)
        return self._order[np.minimum(insertion, len(self._sorted) - 1)]


def _echoes(question: Question, terms: _Terms, turns: Turns) -> Flags:
    """Return whether each message only asks, and has all words of the question and few others."""
    if not (question.is_question and question.text_terms):
        return np.zeros(len(turns.number), bool)
    few_others = turns.words <= ECHO_WORDS[0] * question.words + ECHO_WORDS[1]
    has_all: Flags = np.all(terms.contains[terms.is_in_text], axis=0)
    return turns.asks & few_others & has_all


def _best_cosines(turns: Turns, by_id: _Index, pieces: evidence.PieceCosines) -> Floats:
    """Return the best cosine of each message's pieces; -inf without pieces."""
    best = np.full(len(turns.ids), -np.inf)
    if len(best):
        at = by_id.positions_of(_id_keys(pieces.ids))
        # A message that was written after the turns were read is not among them.
        ids = turns.ids[at]
        is_turn = (ids[:, 0] == pieces.ids[:, 0]) & (ids[:, 1] == pieces.ids[:, 1])
        at, cosine = at[is_turn], pieces.cosine[is_turn]
        # Of several pieces of a message, the last assignment counts.
        order = np.argsort(cosine)
        best[at[order]] = cosine[order]
    return best


def _is_message(turns: Turns, message_id: UUID) -> Flags:
    high, low = divmod(message_id.int, 1 << 64)
    return (turns.ids[:, 0] == np.uint64(high)) & (turns.ids[:, 1] == np.uint64(low))


def _id_keys(ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a search key from both halves of the ids, which are random."""
    return ids[:, 0] ^ ids[:, 1]


def _continues(session: NDArray[np.int64]) -> Flags:
    """Return whether each turn except the first is of the same session as the one before."""
    return session[1:] == session[:-1]


def _previous_turn(
    values: Floats, session: NDArray[np.int64], counts: Flags
) -> tuple[Flags, Floats]:
    """Return whether the turn before counts and is of the same session, and its value or 0."""
    has_previous = np.zeros(len(values), bool)
    has_previous[1:] = counts[:-1] & _continues(session)
    previous = np.zeros(len(values))
    previous[1:] = values[:-1]
    return has_previous, previous * has_previous


def _next_turn(values: Floats, session: NDArray[np.int64], counts: Flags) -> tuple[Flags, Floats]:
    """Return whether the turn after counts and is of the same session, and its value or 0."""
    has_next, following = _previous_turn(values[::-1], session[::-1], counts[::-1])
    return has_next[::-1], following[::-1]


def _session_best(base: Floats, session: NDArray[np.int64], counts: Flags) -> Floats:
    """Return the mean of the SESSION_BEST best turns of each turn's session; nan if none counts."""
    group = np.concatenate(([0], np.cumsum(~_continues(session))))
    groups = np.arange(group[-1] + 1)
    counting = np.flatnonzero(counts)
    # Sorted by session and score: one key takes half the time of two.
    counting = counting[np.argsort(group[counting] * (np.ptp(base) + 1) - base[counting])]
    starts = np.searchsorted(group[counting], groups)
    number = np.minimum(np.bincount(group[counting], minlength=len(groups)), SESSION_BEST)
    sums = np.concatenate(([0.0], np.cumsum(base[counting])))
    total = sums[starts + number] - sums[starts]
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)[group]


def _best(score: Floats, number: NDArray[np.int64], is_last: Flags, limit: int) -> Positions:
    """Return the `limit` positions with the highest scores, best first.

    Those in `is_last` follow all others; of two equal scores the newer message comes first.
    """
    candidates = np.arange(len(score))
    if limit < len(candidates):
        key = np.where(is_last, -np.inf, score)
        candidates = np.flatnonzero(key >= np.partition(key, -limit)[-limit])
    order = np.lexsort((-number[candidates], -score[candidates], is_last[candidates]))
    return candidates[order][:limit]
