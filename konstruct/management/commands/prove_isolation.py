"""manage.py prove_isolation: attack the walls between tenants, in this deployment."""

import json
from argparse import ArgumentParser
from collections import Counter
from typing import Any

from django.core.management.base import CommandError

from konstruct.isolation import Proof, Wall, prove
from tenants.management.base import KonstructCommand, UsageError


class Command(KonstructCommand):
    """Makes throw-away tenants, and removes them."""

    help = (
        "Makes throw-away tenants in this deployment, lets them attack each other by models, SQL,"
        " cache, broker, checkpointer, admin and REST, looks at roles, policies and grants of all"
        " tenants, and removes them. Exit status 1 if anything gets through."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenants", type=int, default=2, help="How many. (%(default)s)")
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
            gone = ", ".join(proof.walls_gone)
            raise CommandError(f"{len(proof.breaches)} attempts got through; not whole: {gone}")

        if proof.not_tried:
            each = proof.not_tried[0]
            raise CommandError(f"nothing is proven by {each.via}: {each.what}: {each.outcome}")

    def _show(self, proof: Proof, *, verbose: bool) -> None:
        for wall in Wall:
            of_wall = [attempt for attempt in proof.attempts if attempt.wall is wall]
            ways = Counter(attempt.via for attempt in of_wall)
            by = ", ".join(f"{number} by {via}" for via, number in ways.items())
            state = "GONE " if wall in proof.walls_gone else "holds"
            self.stdout.write(
                f"{state} {wall}: {proof.held[wall]} of {len(of_wall)} stopped ({by})"
            )
            for attempt in of_wall:
                if attempt.got_through or verbose:
                    mark = "THROUGH" if attempt.got_through else "stopped"
                    self.stdout.write(
                        f"  {mark} {attempt.via}: {attempt.what} -> {attempt.outcome}"
                    )
        self.stdout.write(f"{len(proof.attempts)} attempts, {len(proof.breaches)} got through")
