"""The ranking: weighing by arrays gives the same values as weighing message by message."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from memory.recall import scoring
from memory.recall.evidence import PieceCosines, Turns
from memory.recall.policy import RecallWeights
from memory.text.lexical import term_weights

QUESTION = scoring.Question.of("When did my sister move to Lisbon?")
WEIGHTS = RecallWeights()


def evidence_of(seed: int) -> tuple[Turns, PieceCosines]:
    """Return 40 messages in a few conversations, some of which ask the question itself."""
    random = np.random.default_rng(seed)
    count = 40
    number = random.permutation(1000)[:count]
    asks = random.random(count) < 0.3
    lexemes = random.integers(8, 40, count)
    postings = [
        (term, at, weight_of(random, lexemes[at]))
        for at in range(count)
        for term, chance in zip(QUESTION.terms, random.random(len(QUESTION.terms)), strict=True)
        if asks[at] or random.random() < 0.3
    ]
    pieces = random.choice(count, 60)
    ids = random.integers(0, 2**63, (count, 2)).astype(np.uint64)
    turns = Turns(
        is_large=False,
        messages=count,
        number=number,
        ids=ids,
        session=np.sort(random.integers(0, 6, count)),
        created_at=np.arange(count),
        day=np.zeros(count, np.int64),
        subject=random.choice([*QUESTION.names, 1, 2, 3], count),
        words=random.integers(0, 25, count).astype(np.int32),
        has_time=random.random(count) < 0.4,
        asks=asks,
        by_user=random.random(count) < 0.4,
        lexemes=lexemes,
        is_candidate=np.zeros(count, bool),
        is_context_only=np.zeros(count, bool),
        posting_term=np.array([term for term, *_ in postings]),
        posting_number=number[[at for _, at, _ in postings]],
        posting_weight=np.array([weight for *_, weight in postings]),
        frequency_term=np.empty(0, np.int64),
        document_frequency=np.empty(0),
    )
    return turns, PieceCosines(ids=ids[pieces], cosine=random.random(60))


def weight_of(random: np.random.Generator, lexemes: int) -> float:
    """Return the stored weight for a word of a message with the given number of lexemes."""
    return term_weights(["it"] * random.integers(1, 4) + ["other"] * (lexemes - 3))["it"]


def ranking_of(
    turns: Turns, pieces: PieceCosines, *, echoes_last: bool, limit: int
) -> scoring.Ranking:
    words = scoring.weigh_words(turns, QUESTION, WEIGHTS)
    return scoring.rank(turns, words, pieces, WEIGHTS, echoes_last=echoes_last, limit=limit)


def by_hand(turns: Turns, pieces: PieceCosines) -> list[dict[str, Any]]:
    """Weigh one message after the other, as docs/recall.md describes."""
    postings = in_context(turns)
    messages = turns.messages + scoring.PRIOR_MESSAGES
    idf = {}
    for term in {term for term, *_ in postings}:
        df = sum(own for other, _, _, own in postings if other == term)
        idf[term] = math.log(1 + (messages - df + 0.5) / (df + 0.5))
    rows = []
    for at, number in enumerate(turns.number.tolist()):
        cosines = [
            cosine
            for piece, cosine in zip(pieces.ids, pieces.cosine, strict=True)
            if (piece == turns.ids[at]).all()
        ]
        own = {term for term, of, _, is_own in postings if of == number and is_own}
        short = turns.words[at] <= scoring.ECHO_WORDS[0] * QUESTION.words + scoring.ECHO_WORDS[1]
        echo = turns.asks[at] and short and own.issuperset(QUESTION.text_terms)
        rows.append(
            {
                "number": number,
                "session": turns.session[at],
                "named": turns.subject[at] in QUESTION.names or turns.by_user[at],  # "my"
                "has_time": turns.has_time[at],
                "words": turns.words[at],
                "echo": bool(echo),
                "asks": turns.asks[at],
                "cosine": max(cosines, default=0.0),
                "weighed": bool(cosines) or turns.words[at] > 0,
            }
        )
    for at, row in enumerate(rows):
        echoed = at > 0 and rows[at - 1]["echo"] and rows[at - 1]["session"] == row["session"]
        counting = [p for p in postings if p[1] == row["number"] and (p[3] or not echoed)]
        highest = math.log1p(messages)
        row["lexical"] = sum(w * (idf[term] / highest) ** 1.5 for term, _, w, _ in counting)
        row["base"] = row["cosine"] + WEIGHTS.lexical * row["lexical"]
    rows = [row for row in rows if row["weighed"]]
    mean_cosine = sum(row["cosine"] for row in rows) / len(rows)
    mean_base = sum(row["base"] for row in rows) / len(rows)
    worth = min(1, 80 / (60 + sum(row["words"] for row in rows) / len(rows)))
    for at, row in enumerate(rows):
        same = [r for r in rows if r["session"] == row["session"] and not r["echo"]]
        best = sorted((r["base"] for r in same), reverse=True)[:3]
        row["repeats"] = bool(row["asks"] and row["cosine"] >= scoring.NEAR_QUESTION_COSINE)
        turns_of_session = sum(r["session"] == row["session"] for r in rows)
        share = min(1, max(0, (turns_of_session - 8) / 5)) if not turns.is_large else 1
        of_session = sum(best) / len(best) if best else row["base"]
        before, after = rows[at - 1] if at else None, rows[at + 1] if at + 1 < len(rows) else None
        row["score"] = (
            row["base"]
            + WEIGHTS.length * math.log(1 + min(row["words"], 60))
            + (2 * WEIGHTS.subject if row["named"] else 0)
            + (WEIGHTS.time if row["has_time"] else 0)
            + worth * WEIGHTS.session * (share * of_session + (1 - share) * mean_base)
            + worth * WEIGHTS.previous * (before["cosine"] if _speaks(before, row) else mean_cosine)
            + worth * WEIGHTS.following * (after["base"] if _speaks(after, row) else mean_base)
            - (scoring.NEAR_QUESTION_COST if row["repeats"] else 0)
        )
    return sorted(rows, key=lambda row: (row["echo"], -row["score"]))


def in_context(turns: Turns) -> list[tuple[int, int, float, bool]]:
    """Return the weight of each word in each message and the turns before it: (word, number, …)."""
    written = {
        (term, number): weight
        for term, number, weight in zip(
            turns.posting_term.tolist(), turns.posting_number.tolist(),
            turns.posting_weight.tolist(), strict=True,
        )
    }  # fmt: skip
    lengths = turns.lexemes.tolist()

    def occurrences(term: int, at: int) -> float:
        weight = written.get((term, int(turns.number[at])), 0.0)
        damping = 0.6 * (0.7 + 0.3 * lengths[at] / 32)
        return max(1, round(weight * damping / (1.6 - weight))) if weight else 0

    found = []
    for at, number in enumerate(turns.number.tolist()):
        before = [
            (share, at - back)
            for back, share in ((1, 0.5), (2, 0.25), (3, 0.25))
            if at >= back and turns.session[at - back] == turns.session[at]
        ]
        # Without the speaker and the date, which are four of its lexemes.
        length = lengths[at] + sum(share * (lengths[other] - 4) for share, other in before)
        for term in QUESTION.terms:
            own = occurrences(term, at)
            around = sum(share * occurrences(term, other) for share, other in before)
            frequency = own + (around if term in QUESTION.text_terms else 0)
            if frequency:
                weight = 1.4 * frequency / (frequency + 0.4 * (0.2 + 0.8 * length / 32))
                found.append((term, number, weight, own > 0))
    return found


def _speaks(other: dict[str, Any] | None, row: dict[str, Any]) -> bool:
    return other is not None and other["session"] == row["session"] and not other["echo"]


@pytest.mark.parametrize("seed", range(3))
def test_weighs_as_by_hand(seed: int) -> None:
    evidence = evidence_of(seed)
    expected = by_hand(*evidence)
    ranking = ranking_of(*evidence, echoes_last=True, limit=100)
    assert any(found.is_echo for found in ranking.best)
    assert any(found.repeats_question for found in ranking.best)
    assert [found.number for found in ranking.best] == [row["number"] for row in expected]
    for found, row in zip(ranking.best, expected, strict=True):
        assert found.score == pytest.approx(row["score"])
        assert (found.cosine, found.lexical) == pytest.approx((row["cosine"], row["lexical"]))
        assert (found.is_echo, found.repeats_question) == (row["echo"], row["repeats"])


def test_words_of_time_count_in_questions_about_time() -> None:
    turns, _ = evidence_of(0)
    elsewhere = replace(QUESTION, asks_when=False)
    prior = scoring.weigh_words(turns, QUESTION, WEIGHTS).prior
    timeless = scoring.weigh_words(turns, elsewhere, WEIGHTS).prior
    assert prior - timeless == pytest.approx(WEIGHTS.time * turns.has_time)
    assert turns.has_time.any()
