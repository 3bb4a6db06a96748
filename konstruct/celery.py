"""The Celery application of web, worker and beat."""

import os
from typing import Any

from celery import Celery, Task
from celery.signals import task_postrun, task_prerun, worker_init, worker_shutting_down
from django.utils.module_loading import import_string
from kombu import Connection
from kombu.transport import TRANSPORT_ALIASES
from structlog.contextvars import bind_contextvars, reset_contextvars

from konstruct.processes import wait_for_migrations

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
def _refuse_unsafe_role(**kwargs: Any) -> None:
    """A worker that could bypass row-level security does not work."""
    from django.db import connections

    from tenants.checks.at_start import (
        refuse_unsafe_role,  # both need the settings, which import this
    )

    wait_for_migrations()
    refuse_unsafe_role()
    connections.close_all()


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
    """Remove the task from further log lines of this thread."""
    request: Any = task.request
    reset_contextvars(**request.log_tokens)


@worker_shutting_down.connect
def _stop_soon(**kwargs: Any) -> None:
    """Do not wait for jobs that take long."""
    from konstruct.worker import stop_soon  # only workers need it

    stop_soon()
