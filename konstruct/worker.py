"""The Celery worker takes no tasks while its database is down."""

import logging
from typing import Any

from celery import bootsteps
from celery.worker.consumer.tasks import Tasks

from konstruct.heartbeats import INTERVAL_SECONDS, WORKER, write_heartbeat
from tenants.checks.writable import require_writable
from tenants.outages import OUTAGES, outage_reason

logger = logging.getLogger(__name__)


class DatabaseGate(bootsteps.StartStopStep):
    """Lets the worker take tasks only while its database can be logged in to and written.

    A worker that fails each task at once would otherwise take more tasks than healthy workers.
    """

    requires = (Tasks,)

    def __init__(self, consumer: Any, **options: Any) -> None:
        super().__init__(consumer, **options)
        self._closed_queues: list[Any] = []
        self._timer: Any = None

    def start(self, consumer: Any) -> None:
        """Check the database before the first task, and then every few seconds."""
        self._closed_queues = []
        self._look(consumer)
        self._timer = consumer.timer.call_repeatedly(INTERVAL_SECONDS, self._look, (consumer,))

    def stop(self, consumer: Any) -> None:
        """Stop the checks: the connection to the broker is lost, or the worker ends."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self, consumer: Any) -> None:
        tasks = consumer.task_consumer
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
        if self._closed_queues:
            for queue in self._closed_queues:
                tasks.add_queue(queue)
            self._closed_queues = []
            tasks.consume()
            logger.warning("Taking tasks again: the database is back")
        write_heartbeat(WORKER)
