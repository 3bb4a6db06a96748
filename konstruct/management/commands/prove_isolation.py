"""manage.py prove_isolation: attack the layers between tenants in this deployment."""

import json
from argparse import ArgumentParser
from collections import Counter
from typing import Any

from django.core.management.base import CommandError

from konstruct.isolation import Layer, Proof, prove
from tenants.management.base import KonstructCommand, UsageError


class Command(KonstructCommand):
    """Creates throw-away tenants, and deletes them."""

    help = (
        "Checks roles, policies and grants of all tenants. Creates throw-away tenants in this"
        " deployment, lets them attack each other by models, SQL, cache and REST, and"
        " deletes them. Exit status 1 if an attempt gets through."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--tenants", type=int, default=2, help="Number of tenants (default: %(default)s)."
        )
        parser.add_argument("--json", action="store_true", help="Print one JSON document.")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 2 <= options["tenants"] <= 100:
            raise UsageError("--tenants: give a whole number from 2 to 100")
        proof = prove(options["tenants"])
        if options["json"]:
            self.stdout.write(json.dumps(proof.as_dict(), indent=2))
        else:
            self._show(proof, verbose=options["verbosity"] > 1)
        if proof.breaches:
            broken = ", ".join(proof.broken_layers)
            raise CommandError(f"{len(proof.breaches)} attempts got through; broken: {broken}")
        if proof.not_tried:
            attempt = proof.not_tried[0]
            raise CommandError(
                f"nothing is proven by {attempt.via}: {attempt.what}: {attempt.outcome}"
            )

    def _show(self, proof: Proof, *, verbose: bool) -> None:
        for layer in Layer:
            attempts = [attempt for attempt in proof.attempts if attempt.layer is layer]
            stopped = sum(not attempt.got_through for attempt in attempts)
            vias = Counter(attempt.via for attempt in attempts)
            by = ", ".join(f"{number} by {via}" for via, number in vias.items())
            state = "intact" if stopped == len(attempts) else "BROKEN"
            self.stdout.write(f"{state} {layer}: {stopped} of {len(attempts)} stopped ({by})")
            for attempt in attempts:
                if attempt.got_through or verbose:
                    mark = "THROUGH" if attempt.got_through else "stopped"
                    self.stdout.write(
                        f"  {mark} {attempt.via}: {attempt.what} -> {attempt.outcome}"
                    )
        self.stdout.write(f"{len(proof.attempts)} attempts, {len(proof.breaches)} got through")
