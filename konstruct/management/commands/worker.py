"""manage.py worker QUEUE...: do the jobs of these queues, up to JOB_SLOTS at the same time."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from konstruct.worker import run
from tenants.management.base import KonstructCommand


class Command(KonstructCommand):
    """Runs Celery's worker, with its queues, threads and slots."""

    help = (
        "Writes replies, delivers them, computes embeddings, extracts facts or sweeps, "
        "until it is stopped. A deployment needs a worker for each queue."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "queues", nargs="+", choices=tuple(settings.JOB_SLOTS), help="Queues of this worker."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        run(options["queues"])
