"""The ranking: arrays weighed all at once give what each message weighed by itself gives."""

import math
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from memory.evidence import ASKS, BY_NAME, BY_USER, HAS_TIME, Evidence
from memory.policy import RecallWeights
from memory.questions import Question
from memory.ranking import ECHO_WORDS, PRIOR_MESSAGES, rank

QUESTION = Question.of("When did my sister move to Lisbon?")
WEIGHTS = RecallWeights()


def evidence_of(seed: int) -> Evidence:
    """Return 40 messages in a few conversations, some of which ask the same as the question."""
    random = np.random.default_rng(seed)
    count = 40
    number = random.permutation(1000)[:count]
    asks = random.random(count) < 0.3
    flags = ASKS * asks + random.choice([0, HAS_TIME, BY_USER, BY_NAME, BY_USER + HAS_TIME], count)
    postings = [
        (term, at, random.random(), bool(asks[at] or random.random() < 0.5))
        for at in range(count)
        for term in QUESTION.terms
        if asks[at] or random.random() < 0.3
    ]
    pieces = random.choice(count, 60)
    ids = random.integers(0, 2**63, (count, 2)).astype(np.uint64)
    return Evidence(
        large=False,
        messages=count,
        along=True,
        number=number,
        ids=ids,
        session=np.sort(random.integers(0, 6, count)),
        created_at=np.arange(count),
        words=random.integers(0, 25, count).astype(np.int32),
        flags=flags.astype(np.int32),
        counted_term=np.empty(0, np.int64),
        counted=np.empty(0),
        posting_term=np.array([term for term, *_ in postings]),
        posting_number=number[[at for _, at, *_ in postings]],
        posting_weight=np.array([weight for *_, weight, _ in postings]),
        posting_own=np.array([own for *_, own in postings]),
        piece_ids=ids[pieces],
        piece_cosine=random.random(60),
    )


def by_hand(evidence: Evidence) -> list[dict[str, Any]]:
    """Weigh one message after the other, as docs/recall.md says it."""
    postings = list(
        zip(
            evidence.posting_term.tolist(), evidence.posting_number.tolist(),
            evidence.posting_weight.tolist(), evidence.posting_own.tolist(), strict=True,
        )
    )  # fmt: skip
    messages = evidence.messages + PRIOR_MESSAGES
    idf = {}
    for term in {term for term, *_ in postings}:
        df = sum(own for other, _, _, own in postings if other == term)
        idf[term] = math.log(1 + (messages - df + 0.5) / (df + 0.5))
    rows = []
    for at, number in enumerate(evidence.number.tolist()):
        cosines = [
            cosine
            for piece, cosine in zip(evidence.piece_ids, evidence.piece_cosine, strict=True)
            if (piece == evidence.ids[at]).all()
        ]
        own = {term for term, of, _, said in postings if of == number and said}
        short = evidence.words[at] <= ECHO_WORDS[0] * QUESTION.words + ECHO_WORDS[1]
        echo = evidence.flags[at] & ASKS and short and own.issuperset(QUESTION.said_terms)
        rows.append(
            {
                "number": number,
                "session": evidence.session[at],
                "flags": evidence.flags[at],
                "words": evidence.words[at],
                "echo": bool(echo),
                "cosine": max(cosines, default=0.0),
                "weighed": bool(cosines) or evidence.words[at] > 0,
            }
        )
    for at, row in enumerate(rows):
        echoed = at > 0 and rows[at - 1]["echo"] and rows[at - 1]["session"] == row["session"]
        counting = [p for p in postings if p[1] == row["number"] and (p[3] or not echoed)]
        row["lexical"] = sum(w * idf[term] for term, _, w, _ in counting) / math.log1p(messages)
        row["base"] = row["cosine"] + WEIGHTS.lexical * row["lexical"]
    rows = [row for row in rows if row["weighed"]]
    mean_cosine = sum(row["cosine"] for row in rows) / len(rows)
    mean_base = sum(row["base"] for row in rows) / len(rows)
    for at, row in enumerate(rows):
        same = [r for r in rows if r["session"] == row["session"] and not r["echo"]]
        best = sorted((r["base"] for r in same), reverse=True)[:3]
        before, after = rows[at - 1] if at else None, rows[at + 1] if at + 1 < len(rows) else None
        named = row["flags"] & BY_NAME or row["flags"] & BY_USER  # the question says "my"
        row["score"] = (
            row["base"]
            + WEIGHTS.length * math.log(1 + row["words"])
            + (2 * WEIGHTS.subject if named else 0)
            + (WEIGHTS.time if row["flags"] & HAS_TIME else 0)
            + WEIGHTS.session * (sum(best) / len(best) if best else row["base"])
            + WEIGHTS.previous * (before["cosine"] if _speaks(before, row) else mean_cosine)
            + WEIGHTS.following * (after["base"] if _speaks(after, row) else mean_base)
        )
    return sorted(rows, key=lambda row: (row["echo"], -row["score"]))


def _speaks(other: dict[str, Any] | None, row: dict[str, Any]) -> bool:
    return other is not None and other["session"] == row["session"] and not other["echo"]


@pytest.mark.parametrize("seed", range(8))
def test_weighs_as_by_hand(seed: int) -> None:
    evidence = evidence_of(seed)
    expected = by_hand(evidence)
    ranking = rank(evidence, QUESTION, WEIGHTS, echoes_last=True, limit=100)
    assert any(found.echo for found in ranking.found)
    assert [found.number for found in ranking.found] == [row["number"] for row in expected]
    for found, row in zip(ranking.found, expected, strict=True):
        assert found.score == pytest.approx(row["score"])
        assert (found.cosine, found.lexical) == pytest.approx((row["cosine"], row["lexical"]))
        assert found.echo is row["echo"]


@pytest.mark.parametrize("echoes_last", [False, True])
@pytest.mark.parametrize("limit", [1, 7, 25, 39, 40])
def test_the_first_of_all_are_the_first_of_some(limit: int, echoes_last: bool) -> None:
    evidence = evidence_of(3)
    alike = replace(
        evidence, piece_cosine=evidence.piece_cosine.round(1), words=evidence.words // 9
    )
    every = rank(alike, QUESTION, WEIGHTS, echoes_last=echoes_last, limit=100).found
    some = rank(alike, QUESTION, WEIGHTS, echoes_last=echoes_last, limit=limit).found
    assert some == every[:limit]


def test_at_most_so_many_and_each_with_its_id() -> None:
    evidence = evidence_of(1)
    ranking = rank(evidence, QUESTION, WEIGHTS, echoes_last=False, limit=5)
    assert len(ranking.found) == 5
    at = evidence.number.tolist().index(ranking.found[0].number)
    high, low = (int(half) for half in evidence.ids[at])
    assert ranking.found[0].message_id == UUID(int=high << 64 | low)
