"""Measure recall in fifteen languages, each with a history and questions written for it.

    python -m benchmarks.recall.languages [--language de ja] [--json OUT]

The script imports each history with the product (transcript, outbox) into a temporary tenant, as
`konstruct_app` with policies on, and asks its 24 questions, eight of which have no answer. A
question with `older` asks for a statement that a newer one has replaced. `newer` is the share of
these that find the newer turn, and rank it before the older one. The memories named short/… have
about thirteen messages, and twelve questions, three of which have no answer.
"""

import argparse
import json
import statistics
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from benchmarks.tools.throwaway import set_up, throwaway_tenant

HISTORIES = Path(__file__).with_name("languages")
LANGUAGES = sorted(path.stem for path in HISTORIES.glob("*.json"))
# Nothing was chosen or fitted with these.
HELD_OUT = ("id", "nl")
SHORT = sorted(f"short/{path.stem}" for path in HISTORIES.glob("short/*.json"))
ALL = LANGUAGES + SHORT
FIGURES = ("R@5", "hit@5", "answered", "unanswerable", "newer")


@dataclass(frozen=True)
class History:
    """The turns of a person with an agent, and questions about them."""

    language: str
    turns: list[dict[str, str]]
    questions: list[dict[str, Any]]
    agent_id: UUID


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--language", nargs="+", choices=ALL, default=ALL)
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    histories = [read_history(language) for language in arguments.language]
    set_up()
    with throwaway_tenant() as tenant_id:
        import_histories(tenant_id, histories)
        report = {history.language: measure(tenant_id, history) for history in histories}
    others = [report[language] for language in report if language not in ("en", *HELD_OUT, *SHORT)]
    held_out = [report[language] for language in HELD_OUT if language in report]
    short = [report[language] for language in SHORT if language in report]
    for label, group in (("mean", others), ("held out", held_out), ("short", short)):
        if group:
            report[label] = {name: statistics.fmean(row[name] for row in group) for name in FIGURES}
    if others:
        report["worst"] = {
            name: (max if name == "unanswerable" else min)(figures[name] for figures in others)
            for name in FIGURES
        }
    print(f"{'':<8}", *(f"{name:>13}" for name in FIGURES))
    for label, figures in report.items():
        print(f"{label:<8}", *(f"{figures[name]:>13.3f}" for name in FIGURES))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


def read_history(language: str) -> History:
    """Read the history of a language."""
    content = json.loads((HISTORIES / f"{language}.json").read_text())
    return History(language, content["turns"], content["questions"], uuid4())


def import_histories(tenant_id: UUID, histories: list[History]) -> None:
    """Record every turn, and embed and index them with the outbox."""
    from memory import indexing
    from memory.conversations import transcript

    for history in histories:
        for turn in history.turns:
            session, _, _ = turn["id"].partition(".")
            transcript.record_message(
                tenant_id=tenant_id,
                agent_id=history.agent_id,
                user_id=history.language,
                thread_id=f"{history.language}-{session}",
                channel="import",
                role="user" if turn["role"] == "user" else "assistant",
                content=turn["text"],
                external_id=turn["id"],
                created_at=datetime.fromisoformat(turn["at"]).replace(tzinfo=UTC),
            )
    while indexing.drain(tenant_id).more:
        pass


def measure(tenant_id: UUID, history: History) -> dict[str, float]:
    """Ask the questions of a history, with and without the gate, and return the figures."""
    from memory.recall import recall
    from memory.recall.policy import DEFAULT_POLICY

    ungated = replace(DEFAULT_POLICY, gate=False, top_k=len(history.turns))
    figures: dict[str, list[float]] = {name: [] for name in FIGURES}
    for question in history.questions:
        ranked, given = (
            [
                hit.external_id
                for hit in recall(
                    tenant_id, history.agent_id, history.language, question["text"], policy=policy
                ).hits
            ]
            for policy in (ungated, DEFAULT_POLICY)
        )
        evidence = question["evidence"]
        if not evidence:
            figures["unanswerable"].append(bool(given))
            continue
        found = len(set(evidence).intersection(ranked[:5])) / len(evidence)
        figures["R@5"].append(found)
        figures["hit@5"].append(found > 0)
        figures["answered"].append(not set(evidence).isdisjoint(given))
        if "older" in question:
            newer = min((ranked.index(turn) for turn in evidence if turn in ranked), default=None)
            older = ranked.index(question["older"]) if question["older"] in ranked else len(ranked)
            figures["newer"].append(newer is not None and newer < older)
    return {name: statistics.fmean(values) for name, values in figures.items()}


if __name__ == "__main__":
    main()
