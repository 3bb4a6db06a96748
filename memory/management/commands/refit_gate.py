"""manage.py refit_gate: the gate's coefficients, from labelled memories."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from memory.exceptions import InvalidArgument
from memory.gate import SIGN_NAMES
from memory.gate_fitting import fit_gate
from tenants.management.base import KonstructCommand

MODE_SIGNS = {"hybrid": SIGN_NAMES, "vector": ("cosine", "gap")}


class Command(KonstructCommand):
    help = (
        "Fits the gate to labelled memories and prints its coefficients, which live in"
        ' memory/gate.py. FILE has a JSON object per line: {"signs": {…}, "relevant": true}, and a'
        ' "weight" if it counts other than once; the signs are the channels of a recalled memory.'
        " benchmarks/gate_signs.py writes the one that the gate was fitted to."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="Labelled memories.")
        parser.add_argument(
            "--mode", choices=list(MODE_SIGNS), default="hybrid", help="Whose gate. (%(default)s)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        records = list(_labelled(options["file"]))
        gate = fit_gate(
            [(signs, relevant) for signs, relevant, _ in records],
            MODE_SIGNS[options["mode"]],
            weights=[weight for *_, weight in records],
        )
        self.stdout.write("Gate(")
        for name, value in asdict(gate).items():
            if value:
                self.stdout.write(f"    {name}={value:.3f},")
        self.stdout.write(")")


def _labelled(path: Path) -> Iterator[tuple[dict[str, float], bool, float]]:
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            yield record["signs"], bool(record["relevant"]), float(record.get("weight", 1))
        except (ValueError, KeyError, TypeError):
            raise InvalidArgument(
                f'{path}, line {number}: not {{"signs": {{…}}, "relevant": true}}: {line[:80]}'
            ) from None
