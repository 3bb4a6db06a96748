"""manage.py owner_worker: work that only the owner's role may do, requested by the web."""

import logging
import threading
import time
from argparse import ArgumentParser
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from django.core.management import CommandError

from konstruct import __version__, heartbeats, metrics, processes
from konstruct.privacy import jobs as owner_jobs
from tenants import context, jobs, moving, traces
from tenants.audit.operator_log import record_deletion
from tenants.management.base import KonstructCommand
from tenants.outages import OUTAGES, outage_reason
from tenants.schemas.provisioning import delete_due, migrate_due

logger = logging.getLogger(__name__)

# Pause between two checks for requests of the admin.
PAUSE_SECONDS = 2.0
# Each does its due work, and returns the amount. Each has its own thread, so that none waits for
# another; migrations and erasures, which may take long, have two.
LOOPS: Final[tuple[Callable[[], int], ...]] = (
    migrate_due,
    migrate_due,
    owner_jobs.MERGE.run_due,
    owner_jobs.ERASE.run_due,
    owner_jobs.ERASE.run_due,
    owner_jobs.ERASE_MESSAGES.run_due,
    owner_jobs.RETAIN.run_due,
    owner_jobs.WRITE_TOMBSTONES.run_due,
    moving.settle_moves,
    partial(delete_due, record_deletion),
)


# Threads that wait for Postgres. While there are none, the owner's worker writes its heartbeat.
_waiting: set[int] = set()


class Command(KonstructCommand):
    """Does the owner's work in a loop. Web processes and workers do not have the owner's role."""

    help = (
        "Runs what needs the role of the owner, until it is stopped: new tenants, migrations, "
        "erasures, merges, retention, the journal, and deletions of tenants."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="Do the due work, and exit.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["once"]:
            done = sum(loop() for loop in dict.fromkeys(LOOPS))
            self.stdout.write(f"{done} done")
            return
        processes.share_malloc_heaps()
        processes.return_freed_memory()
        metrics.serve()
        traces.start(heartbeats.OWNER)
        logger.info("Konstruct %s: owner worker starts", __version__)
        jobs.start_worker()
        threads = [threading.Thread(target=_forever, args=(loop,), daemon=True) for loop in LOOPS]
        for thread in threads:
            thread.start()
        while all(thread.is_alive() for thread in threads):
            heartbeats.touch_heartbeat_file()
            if not _waiting:
                heartbeats.write_heartbeat(heartbeats.OWNER)
            time.sleep(PAUSE_SECONDS)
        raise CommandError("a thread of the owner's worker has ended: see its log")


def _forever(loop: Callable[[], int]) -> None:
    """Do the work again and again; while Postgres is down, log the first failure only."""
    thread = threading.get_ident()
    # Ends: with the process, of which this is a daemon thread. It pauses after each iteration.
    while True:
        try:
            loop()
        except OUTAGES as error:
            if not _waiting:
                logger.warning("Looking again every %s s: %s", PAUSE_SECONDS, outage_reason(error))
            _waiting.add(thread)
            context.connection.close()
        else:
            if thread in _waiting:
                _waiting.discard(thread)
                if not _waiting:
                    logger.warning("Postgres answers again")
        time.sleep(PAUSE_SECONDS)
