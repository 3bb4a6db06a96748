"""Celery tasks of the outbox: doing the work of whoever has the turn, and the sweep."""

import logging

from celery import current_app, shared_task
from celery.exceptions import Ignore, SoftTimeLimitExceeded

from tenants import outbox
from tenants.context import tenant_scope
from tenants.outbox.kind import KINDS
from tenants.postgresql.exceptions import ServerDown
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
        with tenant_scope(claimed.tenant_id, pinned=True):
            task.run(str(claimed.tenant_id), str(claimed.key))
    except ServerDown as down:
        logger.warning("task %s waits: %s", task.name, down)
        raise Ignore from down
    except SoftTimeLimitExceeded as late:
        # What it was at has noted it.
        logger.error("task %s was stopped: its time limit is over", task.name)  # noqa: TRY400
        raise Ignore from late


@shared_task
def sweep() -> int:
    """Wake workers for what is due and was not enqueued: its task was lost, or its worker died."""
    return outbox.sweep()
