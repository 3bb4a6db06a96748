"""Print every fact that the rules find in dialogues, for a manual review.

    python -m benchmarks.facts.rules --data locomo10.json [--dialogues 0-3] [--turns FILE.json.gz]

`--turns` is a file of `{"sessions": {id: [{"role", "content"}]}}`, such as LongMemEval's.
"""

import argparse
import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tools.locomo import numbers, read_dialogues
from benchmarks.tools.throwaway import set_up


@dataclass(frozen=True)
class Turn:
    """A message as the rules read it."""

    label: str
    role: str
    speaker: str
    content: str


def main() -> None:
    """Run the rules over the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--dialogues", type=numbers, help="such as 0-3; by default all")
    parser.add_argument("--turns", type=Path, help="sessions with roles, as gzipped JSON")
    arguments = parser.parse_args()
    set_up()
    # Both speakers of a LoCoMo dialogue are people.
    report(
        "LoCoMo",
        (
            Turn(f"{dialogue.number}/{turn.id}", "user", turn.speaker, turn.content)
            for dialogue in read_dialogues(arguments.data, arguments.dialogues)
            for turn in dialogue.turns
        ),
    )
    if arguments.turns:
        sessions = json.loads(gzip.decompress(arguments.turns.read_bytes()))["sessions"]
        report(
            arguments.turns.name,
            (
                Turn(f"{name}/{number}", turn["role"], name, turn["content"])
                for name, turns in sessions.items()
                for number, turn in enumerate(turns)
            ),
        )


def report(name: str, turns: Iterable[Turn]) -> None:
    """Print what the rules find."""
    from konstruct.orchestrator.extraction.rules import candidates

    messages = list(turns)
    found = candidates(messages)
    quotes = sum(len(candidate.evidence) for candidate in found)
    print(f"{name}: {len(messages)} messages, {len(found)} facts, {quotes} quotes")
    for candidate in found:
        print(f"  {candidate.slot:<16} {candidate.fact}")
        for message, quote in candidate.evidence:
            print(f"      {message}: {quote}")


if __name__ == "__main__":
    main()
