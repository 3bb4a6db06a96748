"""Run all benchmarks of facts, and print one table.

    python -m benchmarks.facts --data locomo10.json --facts FACTS.jsonl [--dialogues 0-3]
        [--turns 10000] [--json OUT]

Each part has its own tenant and prints its progress: recorded answers of a language model
(recorded.py), wrong supersession (supersession.py), injections (injections.py) and generated turns
(volume.py).
"""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks.facts import injections, recorded, supersession, volume
from benchmarks.facts.harness import make_agent
from benchmarks.recall.quality import Scope
from benchmarks.tools.locomo import numbers
from benchmarks.tools.throwaway import set_up, throwaway_tenant

VOLUME_THREADS = 50


def main() -> None:
    """Run all parts, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--facts", type=Path, required=True, help="recorded facts of it")
    parser.add_argument("--dialogues", type=numbers, help="such as 0-3; by default all")
    parser.add_argument("--turns", type=int, default=10_000, help="generated turns")
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    dialogues, sessions = recorded.read(arguments.data, arguments.facts, arguments.dialogues)

    def of_recordings(tenant_id: UUID) -> dict[str, Any]:
        agent_id = make_agent(tenant_id, "recorded", **recorded.SETTINGS)
        scopes = [Scope(dialogue, agent_id, f"locomo-{dialogue.number}") for dialogue in dialogues]
        return recorded.run(tenant_id, scopes, sessions)

    set_up()
    report = {
        "recorded": _measured(of_recordings),
        "supersession": _measured(supersession.run),
        "supersession without review": _measured(
            lambda tenant_id: supersession.run(tenant_id, "none")
        ),
        "injections": _measured(injections.run),
        "volume": _measured(
            lambda tenant_id: volume.run(tenant_id, arguments.turns, VOLUME_THREADS)
        ),
    }
    print()
    for name, value in rows(report):
        print(f"| {name:<60} | {value}")
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2, default=str) + "\n")


def _measured(run: Callable[[UUID], dict[str, Any]]) -> dict[str, Any]:
    from tenants.context import tenant_scope

    with throwaway_tenant() as tenant_id, tenant_scope(tenant_id):
        return run(tenant_id)


def rows(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the lines of the table: description and figure."""
    of_recordings = report["recorded"]
    extracted, erased = of_recordings["extraction"], of_recordings["erasure"]
    outcomes = {"active": 0, "confirmed": 0, "refused": 0, **extracted["outcomes"]}
    yield "recorded facts", f"{extracted['recorded facts']}"
    yield "accepted", f"{outcomes['active']} new, {outcomes['confirmed']} known"
    reasons = ", ".join(f"{reason} {count}" for reason, count in extracted["refused"].items())
    yield "rejected", f"{outcomes['refused']}: {reasons}"
    yield "superseded by a later fact", f"{extracted['superseded']}"
    yield "missed: evidence of questions that no active fact cites", f"{extracted['missed']:.3f}"
    for label in ("without facts", "with facts"):
        recorded = of_recordings[label]
        recall = ", ".join(f"{name} {recorded[name]:.3f}" for name in ("R@1", "R@5", "R@10"))
        yield f"recall {label}", f"{recall}, hard negatives {recorded['hard negatives']:.3f}"
        yield (
            f"prompt {label}",
            f"{recorded['evidence in the prompt']:.3f} of the evidence,"
            f" {recorded['memories given']:.1f} memories, {recorded['tokens given']:.0f} tokens",
        )
    second = of_recordings["second run"]
    yield "a second run", f"{second['runs']} runs, changed rows {second['changed rows']}"
    left = {name.strip(): value for name, value in erased.items() if "left" in name}
    yield "cascade of an erased message and person: rows left", f"{sum(left.values())}"
    yield (
        "residue: texts in a dump after, of those before",
        f"{erased['texts of the message in a dump'] + erased['texts of the person in a dump']}"
        f" of {erased['of these in a dump before']}",
    )
    for label in ("supersession", "supersession without review"):
        wrong = report[label]
        yield f"wrong {label}", f"{wrong['wrong']} of {wrong['to keep']} ({wrong['share']:.1%})"
    attacks = report["injections"]
    yield (
        "injections",
        f"{attacks['accepted']} wrong facts active and {attacks['retired']} retired in"
        f" {attacks['cases']} cases",
    )
    sent, received = extracted["tokens per message"]
    yield (
        "requests and tokens for a message",
        f"{extracted['calls per message']:.3f}, {sent:.0f} sent and {received:.0f} received",
    )
    single = extracted["one call per message"]["prompt tokens per message"]
    yield "the same with a request for each message", f"1, {single:,.0f} sent"
    generated = report["volume"]
    yield (
        f"{generated['turns']:,} generated turns",
        f"{generated['calls per message']:.3f} requests for a message,"
        f" {generated['facts']:,} of {generated['facts of the model']:,} facts, peak"
        f" {generated['peak MB'][1]} MB after a tenth, {generated['peak MB'][-1]} MB at the end",
    )


if __name__ == "__main__":
    main()
