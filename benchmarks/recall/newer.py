"""Measure how often a newer statement comes before the older one that it replaces.

    python -m benchmarks.recall.newer [--json OUT]

Each language has one history, written for it in words of people: eight statements in January, other
turns, and in June a turn that changes each of them, whose number is not in the question. `newer`
is the share of questions about the present of which the first of the two results is the newer one,
`past` the share of questions about the past of which it is the older one, and `given` the share of
questions about the present with the newer one in the prompt.
"""

import argparse
import json
import statistics
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from benchmarks.tools.throwaway import set_up, throwaway_tenant

HISTORIES = Path(__file__).with_suffix(".json")
JANUARY, JUNE = datetime(2026, 1, 5, 9, tzinfo=UTC), datetime(2026, 6, 5, 9, tzinfo=UTC)
FIGURES = ("newer", "past", "given")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    histories = json.loads(HISTORIES.read_text())
    agents = {language: uuid4() for language in histories}
    set_up()
    with throwaway_tenant() as tenant_id:
        import_histories(tenant_id, histories, agents)
        report = {
            language: measure(tenant_id, agents[language], language, history)
            for language, history in histories.items()
        }
    report["mean"] = {
        name: statistics.fmean(figures[name] for figures in report.values()) for name in FIGURES
    }
    print(f"{'':<8}", *(f"{name:>8}" for name in FIGURES))
    for label, figures in report.items():
        print(f"{label:<8}", *(f"{figures[name]:>8.3f}" for name in FIGURES))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


def import_histories(tenant_id: UUID, histories: Any, agents: dict[str, UUID]) -> None:
    """Record every turn, and embed and index them with the outbox."""
    from memory import indexing
    from memory.conversations import transcript

    for language, history in histories.items():
        changed, others = history["changed"], history["others"]
        turns = [
            *((f"older-{n}", JANUARY, older) for n, (_, older, _) in enumerate(changed)),
            *((f"other-{n}", JANUARY + timedelta(days=60), text) for n, text in enumerate(others)),
            *((f"newer-{n}", JUNE, newer) for n, (*_, newer) in enumerate(changed)),
        ]
        for number, (name, begin, text) in enumerate(turns):
            transcript.record_message(
                tenant_id=tenant_id,
                agent_id=agents[language],
                user_id=language,
                thread_id=f"{language}-{number // 2}",
                channel="import",
                role="user",
                content=text,
                external_id=name,
                created_at=begin + timedelta(days=number // 2),
            )
    while indexing.drain(tenant_id).more:
        pass


def measure(tenant_id: UUID, agent_id: UUID, user_id: str, history: Any) -> dict[str, float]:
    """Ask the questions of a history, and return the figures."""
    from memory.recall import recall
    from memory.recall.policy import DEFAULT_POLICY

    def ranked(question: str, policy: Any) -> list[str | None]:
        return [
            h.external_id
            for h in recall(tenant_id, agent_id, user_id, question, policy=policy).hits
        ]

    def is_first(names: list[str | None], first: str, second: str) -> bool:
        return first in names and (second not in names or names.index(first) < names.index(second))

    ungated = replace(DEFAULT_POLICY, gate=False, top_k=24)
    questions = [question for question, *_ in history["changed"]]
    return {
        "newer": statistics.fmean(
            is_first(ranked(question, ungated), f"newer-{n}", f"older-{n}")
            for n, question in enumerate(questions)
        ),
        "past": statistics.fmean(
            is_first(ranked(question, ungated), f"older-{n}", f"newer-{n}")
            for question, n in history["past"]
        ),
        "given": statistics.fmean(
            f"newer-{n}" in ranked(question, DEFAULT_POLICY) for n, question in enumerate(questions)
        ),
    }


if __name__ == "__main__":
    main()
