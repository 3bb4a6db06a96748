"""The Celery application of web, worker and beat."""

import os
import threading
from signal import Signals
from typing import Any

import psutil
from celery import Celery, Task
from celery.signals import (
    task_postrun,
    task_prerun,
    worker_init,
    worker_process_init,
    worker_shutting_down,
)
from django.utils.module_loading import import_string
from kombu import Connection
from kombu.transport import TRANSPORT_ALIASES
from structlog.contextvars import bind_contextvars, reset_contextvars

from konstruct.processes import bind_to_parent, wait_for_migrations

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "konstruct.settings")


class KonstructCelery(Celery):
    """Celery that calls settings.BROKER_BEFORE_CONNECT before it connects to its broker."""

    def connection_for_read(self, url: str | None = None, **options: Any) -> Connection:
        _prepare_broker()
        return super().connection_for_read(url, **options)

    def connection_for_write(self, url: str | None = None, **options: Any) -> Connection:
        _prepare_broker()
        return super().connection_for_write(url, **options)


def _prepare_broker() -> None:
    from django.conf import settings  # settings import konstruct, which imports this module

    if settings.BROKER_BEFORE_CONNECT:
        import_string(settings.BROKER_BEFORE_CONNECT)()


TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), "konstruct.broker:Transport"))
app = KonstructCelery("konstruct")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
def _load_for_all_children(**kwargs: Any) -> None:
    """Load the embedding model and openai's SDK before the fork: the children share them."""
    from django.conf import settings  # settings import konstruct, which imports this module

    from memory.embedding.embedder import load_before_fork  # only workers need it

    load_before_fork()
    if settings.LLM_POOL_URL:
        import openai  # noqa: F401  (the import takes a second)


@worker_init.connect
def _refuse_unsafe_role(**kwargs: Any) -> None:
    """A worker that could bypass row-level security does not work."""
    from django.db import connections

    from tenants.checks.at_start import (
        refuse_unsafe_role,  # both need the settings, which import this
    )

    wait_for_migrations()
    refuse_unsafe_role()
    connections.close_all()  # a connection cannot be shared with the children


@worker_init.connect
def _need_the_database(**kwargs: Any) -> None:
    """Make the worker take tasks only while it can use its database."""
    from konstruct.worker import DatabaseGate  # only workers need it

    app.steps["consumer"].add(DatabaseGate)


@task_prerun.connect
def _name_task_in_log(task_id: str, task: Task, **kwargs: Any) -> None:
    """Add the task to its log lines."""
    request: Any = task.request  # open for more attributes
    request.log_tokens = bind_contextvars(task_name=task.name, task_id=task_id)


@task_postrun.connect
def _name_no_task_in_log(task: Task, **kwargs: Any) -> None:
    """Remove the task from further log lines of this process."""
    request: Any = task.request
    reset_contextvars(**request.log_tokens)


@worker_process_init.connect
def _load_the_model(**kwargs: Any) -> None:
    """Load the embedding model in each child at its start, where its parent could not.

    Beside its first task: Celery takes a child for dead that is not up in four seconds.
    """
    from memory.embedding.embedder import load_in_background  # only workers need it

    load_in_background()


@worker_process_init.connect
def _end_with_the_worker(**kwargs: Any) -> None:
    """A child of a killed worker ends too: another worker has its task by then."""
    bind_to_parent(Signals.SIGKILL, os.getppid())


# Of the ten seconds that a container has for its end, and the fifteen under `manage.py serve`.
STOP_SECONDS = 7.0


@worker_shutting_down.connect
def _stop_what_takes_longer(**kwargs: Any) -> None:
    """Let children that are still at work give their attempts back, before they are killed."""

    def terminate() -> None:
        for child in psutil.Process().children():
            child.terminate()

    timer = threading.Timer(STOP_SECONDS, terminate)
    timer.daemon = True
    timer.start()
