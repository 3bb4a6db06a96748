"""manage.py worker QUEUE...: do the jobs of these queues, as many at once as the settings say."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from konstruct.worker import run
from tenants.management.base import KonstructCommand


class Command(KonstructCommand):
    """Runs Celery's worker: the one place that chooses its queues, its threads and their number."""

    help = (
        "Writes replies, delivers them, computes embeddings, extracts facts or sweeps, until it is"
        " ended. A deployment needs a worker for each queue."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "queues", nargs="+", choices=tuple(settings.JOB_SLOTS), help="Queues of this worker."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        run(options["queues"])
