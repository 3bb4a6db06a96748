"""Celery workers: a process for one or more queues, its database checks, and its end.

Each job runs in a thread. Celery's thread pool has no time limits and waits for its threads when it
stops, so both are implemented here: a process ends itself if too many jobs take too long, and gives
its running jobs back when it is stopped.
"""

import logging
import os
import threading
from collections.abc import Sequence
from typing import Any, Final

from celery import bootsteps, current_app, signals
from celery.worker.consumer.tasks import Tasks
from django.conf import settings
from django.db import connections

from konstruct import __version__, metrics
from konstruct.heartbeats import INTERVAL_SECONDS, touch_heartbeat_file, write_heartbeat
from konstruct.processes import return_freed_memory, share_malloc_heaps
from tenants import jobs, traces
from tenants.checks import refuse_unsafe_role, require_writable
from tenants.outages import OUTAGES, outage_reason

logger = logging.getLogger(__name__)

# Of the ten seconds that a container has to stop, and the fifteen under `manage.py serve`.
STOP_SECONDS: Final = 7.0
# Queues whose jobs need the embedding model. Other processes do not load it.
EMBEDDING_QUEUES: Final = frozenset({"replies", "embeddings", "extractions"})
# Set by a signal to stop.
_is_stopping = threading.Event()
LANGUAGE_MODEL_QUEUES: Final = frozenset({"replies", "extractions"})


def run(queues: Sequence[str]) -> None:
    """Do jobs of the queues until SIGTERM, up to settings.JOB_SLOTS at the same time.

    Args:
        queues: names of settings.JOB_SLOTS.
    """
    share_malloc_heaps()
    return_freed_memory()
    if EMBEDDING_QUEUES.intersection(queues):
        from memory.embedding.embedder import load_in_background  # numpy, ONNX Runtime

        load_in_background()
    if LANGUAGE_MODEL_QUEUES.intersection(queues) and settings.LLM_POOL_URL:
        import openai  # noqa: F401  (the import takes a second; no job waits for it)
    metrics.serve(with_states="sweeps" in queues)
    traces.start("worker " + " ".join(queues))
    logger.info("Konstruct %s: worker of %s starts", __version__, ", ".join(queues))
    slots = sum(settings.JOB_SLOTS[queue][0] for queue in queues)
    refuse_unsafe_role()
    connections.close_all()
    current_app.steps["consumer"].add(DatabaseGate)
    signals.worker_shutting_down.connect(stop_soon)
    # Celery's remote control addresses nodes by name, and a queue can have several on one host.
    node = f"{'.'.join(queues)}-{os.getpid()}@%h"
    current_app.worker_main(
        ["--quiet", "worker", "--hostname", node, "--queues", ",".join(queues),
         "--pool", "threads", "--concurrency", str(slots), "--without-gossip", "--without-mingle",
         "--loglevel", "INFO"]
    )  # fmt: skip
    if not _is_stopping.is_set():
        logger.error("The worker ended without a signal: its supervisor starts another process")
    end_process(0 if _is_stopping.is_set() else 1)


def stop_soon(**_: Any) -> None:
    """Claim no further jobs, and end this process after STOP_SECONDS if it still runs."""
    _is_stopping.set()
    jobs.stop_claiming()
    timer = threading.Timer(STOP_SECONDS, end_process, (0,))
    timer.daemon = True
    timer.start()


def end_process(status: int) -> None:
    """Give the running jobs back, wake other workers, and exit without waiting for threads."""
    try:
        if count := jobs.give_back_all():
            logger.warning("%s jobs are given back: other workers do them", count)
            jobs.sweep()
    except Exception:
        logger.exception("Jobs may wait until their leases expire")
    traces.stop()
    logging.shutdown()
    os._exit(status)


class DatabaseGate(bootsteps.StartStopStep):
    """Lets the worker take tasks only while it can log in and write to its database.

    A worker that fails each task immediately would otherwise take more tasks than healthy workers.
    """

    requires = (Tasks,)

    def __init__(self, consumer: Any, **options: Any) -> None:
        super().__init__(consumer, **options)
        self._closed_queues: list[Any] = []
        self._timer: Any = None

    def start(self, consumer: Any) -> None:
        """Check the database before the first task, and then every few seconds."""
        self._closed_queues = []
        self._check_database(consumer)
        self._timer = consumer.timer.call_repeatedly(
            INTERVAL_SECONDS, self._check_database, (consumer,)
        )

    def stop(self, consumer: Any) -> None:
        """Stop the checks: the connection to the broker is lost, or the worker ends."""
        if self._timer is not None:
            self._timer.cancel()

    def _check_database(self, consumer: Any) -> None:
        tasks = consumer.task_consumer
        touch_heartbeat_file()
        try:
            require_writable()
        except OUTAGES as error:
            if not self._closed_queues:
                reason = outage_reason(error)
                logger.error("Taking no tasks until the database is back: %s", reason)  # noqa: TRY400
            for queue in tasks.queues:
                tasks.cancel_by_queue(queue.name)
                self._closed_queues.append(queue)
            return
        jobs.start_worker()
        if self._closed_queues:
            for queue in self._closed_queues:
                tasks.add_queue(queue)
            self._closed_queues = []
            tasks.consume()
            logger.warning("Taking tasks again: the database is back")
        for queue in tasks.queues:
            write_heartbeat(queue.name)
        # Other workers may do overdue jobs by now. The supervisor starts another process.
        slots = sum(settings.JOB_SLOTS.get(queue.name, (0,))[0] for queue in tasks.queues)
        overdue = jobs.overdue_jobs(settings.TASK_TIME_LIMIT)
        if overdue and 2 * overdue >= slots:
            logger.error(
                "%s of %s jobs take longer than TASK_TIME_LIMIT: this process ends", overdue, slots
            )
            end_process(1)
