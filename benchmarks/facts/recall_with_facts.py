"""Compare recall with recorded facts and without: evidence found, memories and words given.

    python -m benchmarks.facts.recall_with_facts --data locomo10.json --facts FACTS.jsonl
        [--dialogues 0-3] [--fit] [--json OUT]

FACTS.jsonl has the answers of a language model that extracted the facts of each session: one JSON
object a session with `dialogue` and `facts`. Each fact has `fact`, `subject`, `slot`, `value`,
`multi`, `kind`, `speaker`, `valid_from` and `evidence` (`message` and `quote`). The script records
the facts unchanged and as multi-valued, so that none supersedes another. It asks every question
before and after. "Answer" is the share of the answer's words that the prompt's memories contain.
With --fit the script fits the coefficients of the gate for messages with facts, and prints them.
"""

import argparse
import json
import math
import statistics
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np

from benchmarks.recall.quality import (
    DEPTHS,
    Scope,
    embed_questions,
    import_dialogues,
    latency,
    quality,
)
from benchmarks.tools.locomo import Dialogue, Question, numbers, read_dialogues
from benchmarks.tools.throwaway import set_up, throwaway_tenant

NEWTON_STEPS = 30


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--facts", type=Path, required=True, help="recorded facts of it")
    parser.add_argument("--dialogues", type=numbers, help="such as 0-3; by default all")
    parser.add_argument("--fit", action="store_true", help="fit the gate for messages with facts")
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    dialogues = read_dialogues(arguments.data, arguments.dialogues)
    answers = read_answers(arguments.data)
    set_up()
    report: dict[str, Any] = {}
    with throwaway_tenant() as tenant_id:
        scopes = [Scope(dialogue, uuid4(), f"locomo-{dialogue.number}") for dialogue in dialogues]
        report["import"] = import_dialogues(tenant_id, scopes)
        vectors = embed_questions(scopes)
        report["without"] = measure(tenant_id, scopes, vectors, answers)
        report["facts"] = record_facts(tenant_id, scopes, arguments.facts)
        report["with"] = measure(tenant_id, scopes, vectors, answers)
        if arguments.fit:
            report["fit"] = fit(tenant_id, scopes, vectors)
    show(report)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


def read_answers(path: Path) -> dict[tuple[int, str], str]:
    """Return the answers of a LoCoMo file by dialogue and question."""
    return {
        (number, question["question"]): str(question.get("answer", ""))
        for number, record in enumerate(json.loads(path.read_text()))
        for question in record["qa"]
    }


def record_facts(tenant_id: UUID, scopes: Iterable[Scope], path: Path) -> int:
    """Record the facts of the dialogues. Return their number."""
    from memory.facts import Author, Quote, embed_facts, record_candidate
    from memory.models import AuthorKind, MemoryEntry, Message
    from tenants.context import tenant_scope

    author = Author(AuthorKind.RUN, "benchmark", "benchmark")
    by_dialogue = {scope.dialogue.number: scope for scope in scopes}
    recorded = 0
    with tenant_scope(tenant_id):
        for line in path.read_text().splitlines():
            session = json.loads(line)
            scope = by_dialogue.get(session["dialogue"])
            if scope is None:
                continue
            messages = {
                message.external_id: message
                for message in Message.objects.of(tenant_id, scope.agent_id, scope.user_id)
            }
            entries = [
                MemoryEntry(
                    tenant_id=tenant_id,
                    agent_id=scope.agent_id,
                    user_id=scope.user_id,
                    content=fact["fact"],
                    subject=fact["subject"],
                    slot=fact["slot"],
                    value=fact["value"],
                    kind=fact["kind"],
                    asserter=fact["speaker"],
                )
                for fact in session["facts"]
            ]
            embed_facts(entries)
            for fact, entry in zip(session["facts"], entries, strict=True):
                quotes = []
                for evidence in fact["evidence"]:
                    message = messages[evidence["message"]]
                    start = message.content.index(evidence["quote"])
                    quotes.append(Quote(message, start, start + len(evidence["quote"])))
                if fact["valid_from"]:
                    created_at = min(quote.message.created_at for quote in quotes)
                    since = _moment(fact["valid_from"])
                    entry.valid_from = min(since, created_at)
                record_candidate(entry, quotes, author=author)
                recorded += 1
    return recorded


def _moment(date: str) -> datetime:
    """Return the beginning of a date, month or year as a datetime."""
    year, month, day = [*map(int, date.split("-")), 1, 1][:3]
    return datetime(year, month, day, tzinfo=UTC)


def measure(
    tenant_id: UUID,
    scopes: list[Scope],
    vectors: dict[str, np.ndarray[Any, Any]],
    answers: dict[tuple[int, str], str],
) -> dict[str, Any]:
    """Ask all questions. Return the figures."""
    from memory.context import ContextManager
    from memory.context.tokens import count
    from memory.recall import recall
    from memory.recall.policy import DEFAULT_POLICY

    deep = replace(DEFAULT_POLICY, gate=False, top_k=max(DEPTHS))
    found: list[tuple[Question, Any]] = []
    prompts: list[dict[str, float]] = []
    for scope in scopes:
        for question in scope.dialogue.questions:
            arguments = (tenant_id, scope.agent_id, scope.user_id, question.text)
            found.append(
                (question, recall(*arguments, policy=deep, query_embedding=vectors[arguments[3]]))
            )
            gathered = ContextManager().gather(
                tenant_id,
                "benchmark",
                question.text,
                agent_id=scope.agent_id,
                user_id=scope.user_id,
                session_messages=[],
            )
            result = gathered.recalled
            cited = {message_id for fact in result.facts for message_id in fact.message_ids}
            ids = external_ids(tenant_id, scope)
            evidence = {
                ids[message_id] for message_id in cited | {hit.message_id for hit in result.hits}
            }
            wanted = words_of(answers.get((scope.dialogue.number, question.text), ""))
            words = words_of("\n".join(gathered.lines))
            prompts.append(
                {
                    "R@10": len(evidence & question.evidence) / len(question.evidence),
                    "given": len(gathered.lines),
                    "facts": len(result.facts),
                    "words": sum(len(line.split()) for line in gathered.lines),
                    "tokens": count("\n".join(gathered.lines)),
                    "answer": len(wanted & words) / len(wanted) if wanted else math.nan,
                }
            )
    hard = [
        bool(
            recall(
                tenant_id, scope.agent_id, scope.user_id, text, query_embedding=vectors[text]
            ).hits
        )
        for scope in scopes
        for text in negatives(scopes, scope.dialogue)
    ]
    return {
        "ranking": quality(found),
        "prompt": {name: float(np.nanmean([row[name] for row in prompts])) for name in prompts[0]},
        "hard": statistics.fmean(hard) if hard else None,
        "milliseconds": latency(tenant_id, scopes, DEFAULT_POLICY, vectors),
    }


_ids: dict[UUID, dict[UUID, str | None]] = {}


def external_ids(tenant_id: UUID, scope: Scope) -> dict[UUID, str | None]:
    """Return the ids of a dialogue's turns by the ids of their messages."""
    from memory.models import Message
    from tenants.context import tenant_scope

    if scope.agent_id not in _ids:
        with tenant_scope(tenant_id):
            rows = Message.objects.of(tenant_id, scope.agent_id, scope.user_id)
            _ids[scope.agent_id] = dict(rows.values_list("id", "external_id"))
    return _ids[scope.agent_id]


def negatives(scopes: Iterable[Scope], dialogue: Dialogue) -> list[str]:
    """Return the questions of the other dialogues, with the names of this dialogue's speakers."""
    return [
        scope.dialogue.renamed(question, dialogue)
        for scope in scopes
        if scope.dialogue is not dialogue
        for question in scope.dialogue.questions
    ]


def words_of(text: str) -> set[str]:
    """Return the stems of the words of a text."""
    from memory.text.lexical import lexemes

    return set(lexemes(text))


def fit(
    tenant_id: UUID, scopes: list[Scope], vectors: dict[str, np.ndarray[Any, Any]]
) -> dict[str, float]:
    """Fit the coefficients of the gate for messages with facts. The other coefficients stay.

    A logistic regression with the logit of the other signs as offset. Hard negatives count a third.
    """
    from memory.embedding.embedder import model_files
    from memory.recall import recall
    from memory.recall.policy import DEFAULT_POLICY, GateFeatures, constants_of

    policy = replace(DEFAULT_POLICY, gate=False)
    rows = []
    for scope in scopes:
        questions = [
            (question.text, question.evidence, 1.0) for question in scope.dialogue.questions
        ]
        questions += [(text, frozenset(), 1 / 3) for text in negatives(scopes, scope.dialogue)]
        for text, evidence, weight in questions:
            arguments = (tenant_id, scope.agent_id, scope.user_id, text)
            for hit in recall(*arguments, policy=policy, query_embedding=vectors[text]).hits:
                if "fact" in hit.channels:
                    features = GateFeatures(*(hit.channels[n] for n in GateFeatures._fields))
                    value = constants_of(model_files()).gates["hybrid"].value(features)
                    rows.append(
                        (
                            hit.channels["fact"],
                            math.log(value / (1 - value)),
                            hit.external_id in evidence,
                            weight,
                        )
                    )
    cosine, offset, is_relevant, weights = (
        np.array(column, float) for column in zip(*rows, strict=True)
    )
    signs = np.column_stack([np.ones(len(cosine)), cosine])
    coefficients = np.zeros(2)
    for _ in range(NEWTON_STEPS):
        found = 1 / (1 + np.exp(-(offset + signs @ coefficients)))
        gradient = signs.T @ (weights * (is_relevant - found))
        curvature = (signs * (weights * found * (1 - found))[:, None]).T @ signs
        coefficients += np.linalg.solve(curvature, gradient)
    return {"cited": float(coefficients[0]), "fact": float(coefficients[1])}


def show(report: dict[str, Any]) -> None:
    """Print the figures."""
    print(f"{report['facts']} facts recorded")
    for part in ("ranking", "prompt"):
        names = [name for name in report["without"][part] if name != "questions"]
        print(f"{part:<10}", *(f"{name:>8}" for name in names))
        for label in ("without", "with"):
            print(f"{label:<10}", *(f"{report[label][part][name]:>8.3f}" for name in names))
    for label in ("without", "with"):
        times, hard = report[label]["milliseconds"], report[label]["hard"]
        print(
            f"{label:<10} hard negatives {'-' if hard is None else format(hard, '.3f')};"
            f" ms p50 {times['p50']:.2f}, p95 {times['p95']:.2f}"
        )
    if "fit" in report:
        print("gate:", ", ".join(f"{name}={value:.2f}" for name, value in report["fit"].items()))


if __name__ == "__main__":
    main()
