"""manage.py owner_worker: what only the owner's role may do, and the web asks for."""

import logging
import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from django.db import OperationalError, connection

from konstruct.trust import jobs
from tenants.management.base import KonstructCommand
from tenants.schemas.provisioner import provision_registered

logger = logging.getLogger(__name__)

# How soon what an operator asks for in the admin is begun.
PAUSE_SECONDS = 2.0
# Each does what waits for it, and returns how much that was.
JOBS: Final[tuple[Callable[[], int], ...]] = (
    provision_registered,
    # Before erasures, which must find all that is a person's under one id.
    jobs.move,
    jobs.erase,
    jobs.retain,
)


class Command(KonstructCommand):
    """Looks for work now and then, as the owner; the web and the workers never are."""

    help = (
        "Sets up the tenants that operators register in the admin, carries out erasures that were"
        " asked for, moves what was said by identities that were linked, and removes what is past"
        " its retention, until it is ended."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="Do what waits, and end.")
        parser.add_argument(
            "--heartbeat",
            type=Path,
            metavar="FILE",
            help="Touched at every look, for health checks.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["once"]:
            done = sum(job() for job in JOBS)
            self.stdout.write(f"{done} done")
            return
        while True:
            if options["heartbeat"]:
                options["heartbeat"].touch()
            try:
                for job in JOBS:
                    job()
            except OperationalError as error:
                # Postgres is away; it will be back.
                logger.warning("looking again in %s s: %s", PAUSE_SECONDS, error)
                connection.close()
            time.sleep(PAUSE_SECONDS)
