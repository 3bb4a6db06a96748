"""Celery beat's scheduler: one line in the log for a broker that is down, and a heartbeat."""

import logging
from typing import Any

from celery.beat import Scheduler as CeleryScheduler

from konstruct.heartbeats import BEAT, write_heartbeat
from tenants.outages import outage_reason

logger = logging.getLogger(__name__)


class Scheduler(CeleryScheduler):
    """Celery's scheduler with the schedule in memory: all tasks are due within seconds."""

    _is_failing = False

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Send a task that is due. A broker that is down is logged once, not at each task."""
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except Exception as error:  # it is tried again when the task is due again
            if not self._is_failing:
                logger.error("No task can be sent: %s", outage_reason(error))  # noqa: TRY400
            self._is_failing = True
            return
        if self._is_failing:
            self._is_failing = False
            logger.warning("Tasks are sent again")
        write_heartbeat(BEAT)
