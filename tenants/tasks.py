"""Celery tasks of the outbox: doing the work of whoever has the turn, and the sweep."""

import logging

from celery import current_app, shared_task
from celery.exceptions import Ignore, SoftTimeLimitExceeded
from structlog.contextvars import bound_contextvars

from tenants import outbox
from tenants.context import tenant_scope
from tenants.outages import OUTAGES, outage_reason
from tenants.outbox.kind import KINDS
from tenants.servers import MAIN

logger = logging.getLogger(__name__)


@shared_task(name=outbox.WORK)
def work(kind: str, server: str = MAIN) -> None:
    """Claim an entry of this kind on a server, of the tenant whose turn it is, and do it.

    Which one it is stands in the outbox alone. Where nothing is due, another worker has done it.
    """
    task = current_app.tasks[KINDS[kind].task]
    try:
        claimed = outbox.claim(KINDS[kind], server)
        if claimed is None:
            return
        named = bound_contextvars(task_name=task.name)  # the log names the task that it runs
        with named, tenant_scope(claimed.tenant_id, pinned=True):
            task.run(str(claimed.tenant_id), str(claimed.key))
    except OUTAGES as error:
        # The outbox keeps the work. The traceback of an outage does not help.
        logger.warning("task %s waits: %s", task.name, outage_reason(error))
        raise Ignore from error
    except SoftTimeLimitExceeded as late:
        # What it was at has noted it.
        logger.error("task %s was stopped: its time limit is over", task.name)  # noqa: TRY400
        raise Ignore from late


@shared_task
def sweep() -> int:
    """Wake workers for what is due and was not enqueued: its task was lost, or its worker died."""
    try:
        return outbox.sweep()
    except OUTAGES as error:
        logger.warning("the sweep waits: %s", outage_reason(error))
        raise Ignore from error
