"""Measure recall quality: the evidence found, and results for unanswerable questions.

    python -m benchmarks.recall.quality --data locomo10.json [--dialogues 0-3] [--json OUT]

The script imports the dialogues with the product (transcript, outbox) into a temporary tenant, as
`konstruct_app` with policies on. It asks every question about its own dialogue, for the share of
the evidence among the first k (R@k). It also asks it about the other dialogues, with and without
swapped names, for the share of questions with a wrong result.
"""

import argparse
import json
import math
import statistics
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np

from benchmarks.tools.locomo import CATEGORIES, Dialogue, Question, numbers, read_dialogues
from benchmarks.tools.throwaway import set_up, throwaway_tenant

DEPTHS = (1, 3, 5, 10, 20)
# (open_at, keep_at), from lenient to strict. The policy's own values are inserted among them.
GATES = ((0.02, 0.005), (0.03, 0.005), (0.05, 0.005), (0.05, 0.01), (0.08, 0.02), (0.15, 0.03))


@dataclass(frozen=True)
class Scope:
    """The agent and user of a dialogue."""

    dialogue: Dialogue
    agent_id: UUID
    user_id: str


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--dialogues", type=numbers, help="such as 0-3; by default all")
    parser.add_argument("--mode", choices=["hybrid", "vector"], help="by default both")
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    dialogues = read_dialogues(arguments.data, arguments.dialogues)
    set_up()
    with throwaway_tenant() as tenant_id:
        report = run(tenant_id, dialogues, arguments.mode)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


def run(tenant_id: UUID, dialogues: list[Dialogue], mode: str | None) -> dict[str, Any]:
    """Import, ask and print. Return the figures."""
    scopes = [Scope(dialogue, uuid4(), f"locomo-{dialogue.number}") for dialogue in dialogues]
    report: dict[str, Any] = {"import": import_dialogues(tenant_id, scopes)}
    vectors = embed_questions(scopes)
    for name in [mode] if mode else ["vector", "hybrid"]:
        report[name] = measure(tenant_id, scopes, vectors, name)
    return report


def import_dialogues(tenant_id: UUID, scopes: Iterable[Scope]) -> dict[str, float]:
    """Record every turn, and embed them with the outbox."""
    from memory import indexing
    from memory.conversations import transcript
    from memory.embedding.embedder import get_embedder

    get_embedder()  # a worker loads the model once
    started, count = time.perf_counter(), 0
    for scope in scopes:
        for turn in scope.dialogue.turns:
            transcript.record_message(
                tenant_id=tenant_id,
                agent_id=scope.agent_id,
                user_id=scope.user_id,
                thread_id=turn.session,
                channel="import",
                role=scope.dialogue.role_of(turn),
                name=turn.speaker,
                content=turn.content,
                external_id=turn.id,
                created_at=turn.said_at,
            )
            count += 1
    recorded = time.perf_counter()
    while indexing.drain(tenant_id).more:
        pass
    embedded = time.perf_counter()
    rates = {
        "messages": count,
        "recorded_per_second": count / (recorded - started),
        "embedded_per_second": count / (embedded - recorded),
    }
    print(
        f"{count} messages: recorded {rates['recorded_per_second']:.0f}/s,"
        f" embedded and indexed {rates['embedded_per_second']:.0f}/s\n"
    )
    return rates


def embed_questions(scopes: list[Scope]) -> dict[str, np.ndarray[Any, Any]]:
    """Return the vectors of all questions, unchanged and with the names of every other dialogue."""
    from memory.embedding.embedder import get_embedder

    texts = sorted({text for scope in scopes for text, *_ in _asked_of(scopes, scope)})
    return dict(zip(texts, get_embedder().encode(texts, is_query=True), strict=True))


def _asked_of(scopes: list[Scope], scope: Scope) -> Iterator[tuple[str, str, Question]]:
    """Return the questions about a scope: (text, kind, question), kind is own, raw or hard."""
    for other in scopes:
        for question in other.dialogue.questions:
            if other is scope:
                yield question.text, "own", question
            else:
                yield question.text, "raw", question
                yield other.dialogue.renamed(question, scope.dialogue), "hard", question


def ask_everything(
    tenant_id: UUID,
    scopes: list[Scope],
    vectors: dict[str, np.ndarray[Any, Any]],
    policy: Any,
) -> list[tuple[str, Question, Any]]:
    """Ask every question about every scope without the gate: (kind, question, result)."""
    from memory.recall import recall

    deep = replace(policy, gate=False, top_k=max(DEPTHS))
    return [
        (
            kind,
            question,
            recall(
                tenant_id,
                scope.agent_id,
                scope.user_id,
                text,
                policy=deep,
                query_embedding=vectors[text],
            ),
        )
        for scope in scopes
        for text, kind, question in _asked_of(scopes, scope)
    ]


def measure(
    tenant_id: UUID,
    scopes: list[Scope],
    vectors: dict[str, np.ndarray[Any, Any]],
    mode: str,
) -> dict[str, Any]:
    """Ask all questions in one mode. Print and return the figures."""
    from memory.recall.policy import RecallPolicy

    default = RecallPolicy(mode="vector" if mode == "vector" else "hybrid")
    found = ask_everything(tenant_id, scopes, vectors, default)
    own = [(question, result) for kind, question, result in found if kind == "own"]
    report: dict[str, Any] = {
        "overall": quality(own),
        "by_category": {
            CATEGORIES[category]: quality([pair for pair in own if pair[0].category == category])
            for category in CATEGORIES
            if any(question.category == category for question, _ in own)
        },
        "gate": [
            gate_line(found, open_at, keep_at, (open_at, keep_at) == _thresholds(default))
            for open_at, keep_at in sorted({*GATES, _thresholds(default)})
        ],
        "milliseconds": latency(tenant_id, scopes, default, vectors),
    }
    _print(mode, report)
    return report


def _thresholds(policy: Any) -> tuple[float, float]:
    return policy.open_at, policy.keep_at


def quality(asked: list[tuple[Question, Any]]) -> dict[str, float]:
    """Return means of the usual measures over questions, from ungated results."""
    rows = []
    for question, result in asked:
        relevant = [hit.external_id in question.evidence for hit in result.hits]
        ideal = sum(1 / math.log2(rank + 2) for rank in range(min(10, len(question.evidence))))
        gained = sum(hit / math.log2(rank + 2) for rank, hit in enumerate(relevant[:10]))
        rows.append(
            {f"R@{k}": sum(relevant[:k]) / len(question.evidence) for k in DEPTHS}
            | {
                "hit@10": float(any(relevant[:10])),
                "MRR": 1 / (relevant.index(True) + 1) if any(relevant) else 0.0,
                "nDCG@10": gained / ideal,
            }
        )
    means = {name: statistics.fmean(row[name] for row in rows) for name in rows[0]}
    return {"questions": len(rows), **means}


def gate_line(
    found: list[tuple[str, Question, Any]], open_at: float, keep_at: float, default: bool
) -> dict[str, Any]:
    """Return the results of the gate with these thresholds, of the ten best."""
    shares: dict[str, list[float]] = {"own": [], "raw": [], "hard": []}
    returned = []
    for kind, question, result in found:
        hits = result.hits[:10]
        is_open = any(hit.gate_value >= open_at for hit in hits)
        kept = [hit for hit in hits if is_open and hit.gate_value >= keep_at]
        if kind == "own":
            right = sum(hit.external_id in question.evidence for hit in kept)
            shares["own"].append(right / len(question.evidence))
            returned.append(len(kept))
        else:
            shares[kind].append(float(bool(kept)))
    return {
        "open_at": open_at,
        "keep_at": keep_at,
        "default": default,
        "R@10": statistics.fmean(shares["own"]),
        "returned": statistics.fmean(returned),
        "raw": statistics.fmean(shares["raw"]) if shares["raw"] else None,
        "hard": statistics.fmean(shares["hard"]) if shares["hard"] else None,
    }


def latency(
    tenant_id: UUID,
    scopes: list[Scope],
    policy: Any,
    vectors: dict[str, np.ndarray[Any, Any]],
) -> dict[str, float]:
    """Return p50 and p95 of a whole recall, with the question's vector given and without."""
    from memory.recall import recall

    given_times, embedded = [], []
    for scope in scopes:
        for question in scope.dialogue.questions[:100]:
            arguments = (tenant_id, scope.agent_id, scope.user_id, question.text)
            started = time.perf_counter()
            recall(*arguments, policy=policy, query_embedding=vectors[question.text])
            between = time.perf_counter()
            recall(*arguments, policy=policy)
            given_times.append(1000 * (between - started))
            embedded.append(1000 * (time.perf_counter() - between))
    return {
        "p50": float(np.percentile(given_times, 50)),
        "p95": float(np.percentile(given_times, 95)),
        "p50_with_embedding": float(np.percentile(embedded, 50)),
        "p95_with_embedding": float(np.percentile(embedded, 95)),
    }


def _print(mode: str, report: dict[str, Any]) -> None:
    names = [name for name in report["overall"] if name != "questions"]
    print(f"{mode}, without the gate\n{'':<14}{'questions':>10}", *(f"{n:>8}" for n in names))
    for label, figures in [("overall", report["overall"]), *report["by_category"].items()]:
        print(f"{label:<14}{figures['questions']:>10}", *(f"{figures[n]:>8.3f}" for n in names))
    print(
        f"\n{mode}, gated\n"
        f"{'open_at':>8}{'keep_at':>9}{'R@10':>8}{'returned':>10}{'raw':>8}{'hard':>8}"
    )
    for line in report["gate"]:
        negatives = "".join(
            f"{'-':>8}" if line[kind] is None else f"{line[kind]:>8.4f}" for kind in ("raw", "hard")
        )
        mark = "  <- default" if line["default"] else ""
        print(
            f"{line['open_at']:>8}{line['keep_at']:>9}{line['R@10']:>8.3f}{line['returned']:>10.1f}"
            f"{negatives}{mark}"
        )
    times = report["milliseconds"]
    print(
        f"\nms, vector given: p50 {times['p50']:.1f}, p95 {times['p95']:.1f};"
        f" with its embedding: p50 {times['p50_with_embedding']:.1f},"
        f" p95 {times['p95_with_embedding']:.1f}\n"
    )


if __name__ == "__main__":
    main()
