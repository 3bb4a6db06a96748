"""Enqueues tasks. The broker only wakes workers: what it loses, a sweeper finds in its table."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from celery import Task, current_app

logger = logging.getLogger(__name__)


def enqueue(task: Task, *args: Any) -> None:
    """Enqueue the task. A broker that is down costs a log line, never the caller's work.

    Call it after the commit of the rows that the task is about.
    """
    _enqueue(partial(task.apply_async, args, retry=False), task.name, args)


def enqueue_by_name(name: str, *args: Any, queue: str | None = None) -> None:
    """Enqueue the task of this name, as `enqueue` does: for modules that the task imports."""
    send = partial(current_app.send_task, name, args, queue=queue, retry=False)
    _enqueue(send, name, args)


def _enqueue(enqueue: Callable[[], object], name: str, args: tuple[Any, ...]) -> None:
    try:
        enqueue()
    except Exception as error:  # whatever the broker's trouble, the row stands and is swept
        logger.warning(
            "%s%r was not enqueued (%s: %s). The sweeper will find it; is the broker running?",
            name,
            args,
            type(error).__name__,
            error,
        )
