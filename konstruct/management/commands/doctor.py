"""manage.py doctor: check the configuration and the processes of the deployment."""

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError

from konstruct.doctor import SEVERITY, TIMEOUT_SECONDS, Answer, Status, examine
from tenants.management.base import KonstructCommand, UsageError

MAX_TIMEOUT_SECONDS = 300


class Command(KonstructCommand):
    """Looks at everything that a deployment needs, and changes nothing."""

    help = (
        "Checks settings, roles, grants, pooler, extension, models, clocks, disks, locks, tenants,"
        " queues, processes and backups. Each answer is ok, warning or wrong, with its remedy. Exit"
        " status 1 if something is wrong."
    )
    # It runs the system checks itself, and shows their findings.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print one JSON document.")
        parser.add_argument(
            "--fail-on",
            choices=(Status.WARNING.value, Status.WRONG.value),
            default=Status.WRONG.value,
            help="Lowest status for which the exit status is 1 (default: %(default)s).",
        )
        parser.add_argument(
            "--timeout",
            type=float,
            default=TIMEOUT_SECONDS,
            metavar="SECONDS",
            help="Time limit for all checks together (default: %(default)s).",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not 0 < options["timeout"] <= MAX_TIMEOUT_SECONDS:
            raise UsageError(f"--timeout: give seconds, up to {MAX_TIMEOUT_SECONDS}")
        report = examine(options["timeout"])
        if options["json"]:
            self.stdout.write(json.dumps(report.as_dict(), indent=2))
        else:
            self._show(report.answers)
        failed = [
            answer
            for answer in report.answers
            if SEVERITY[answer.status] >= SEVERITY[Status(options["fail_on"])]
        ]
        if failed:
            counts = {
                status: sum(answer.status == status for answer in failed) for status in Status
            }
            numbers = ", ".join(f"{number} {status}" for status, number in counts.items() if number)
            raise CommandError(f"{numbers}, in {report.seconds:.1f} s")

    def _show(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            remedy = f" -> {answer.remedy}" if answer.remedy else ""
            where = answer.check
            if answer.subject not in ("", answer.check):
                where = f"{answer.subject}: {answer.check}"
            self.stdout.write(f"{answer.status:<7}  {where}: {answer.text}{remedy}")
