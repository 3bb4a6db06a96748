"""The Celery application of web, worker and beat."""

import os
from signal import Signals
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_process_init
from kombu import Connection

from konstruct.processes import bind_to_parent

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "konstruct.settings")


class KonstructCelery(Celery):
    """Celery that starts the embedded broker before the first connection, where no URL is set."""

    def _connection(self, url: str | None, **options: Any) -> Connection:
        from django.conf import settings  # settings import konstruct, which imports this module

        if settings.EMBEDDED_CACHE:
            from konstruct import embedded

            embedded.ensure_valkey()
        return super()._connection(url, **options)  # type: ignore[misc]  # not in the stubs


app = KonstructCelery("konstruct")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
def _refuse_unsafe_role(**kwargs: Any) -> None:
    """A worker that could bypass row-level security does not work."""
    from django.db import connections

    from tenants.checks import refuse_unsafe_role  # both need the settings, which import this

    refuse_unsafe_role()
    connections.close_all()  # a connection cannot be shared with the children


@worker_init.connect
def _import_for_all_children(**kwargs: Any) -> None:
    """Import torch before the children are forked.

    They share it: 52 MB each instead of 480, and a child in the place of a killed one embeds after
    0.3 s instead of 6 (measured).
    """
    from memory.embeddings import import_libraries  # only workers need it

    import_libraries()


@worker_process_init.connect
def _end_with_the_worker(**kwargs: Any) -> None:
    """A child of a killed worker ends too: another worker has its task by then."""
    bind_to_parent(Signals.SIGKILL, os.getppid())
