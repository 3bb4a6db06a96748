"""Rings for a worker. The broker is a door bell, not a promise: what it loses, a sweeper finds."""

import logging
from typing import Any

from celery import Task

logger = logging.getLogger(__name__)


def ring(task: Task, *args: Any) -> None:
    """Enqueue the task. A broker that is down costs a log line, never the caller's work.

    Call it after the commit of the rows that the task is about.
    """
    try:
        task.apply_async(args, retry=False)
    except Exception as error:  # whatever keeps the bell from ringing, the row stands and is swept
        logger.warning(
            "%s%r was not enqueued (%s: %s). The sweeper will find it; is the broker running?",
            task.name,
            args,
            type(error).__name__,
            error,
        )
