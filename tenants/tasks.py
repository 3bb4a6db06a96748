"""Celery tasks that do jobs: one claims and does a job, the other wakes workers for due jobs."""

import logging

from celery import current_app, shared_task
from celery.exceptions import Ignore, SoftTimeLimitExceeded
from structlog.contextvars import bound_contextvars

from tenants import jobs
from tenants.context import tenant_scope
from tenants.jobs import KINDS
from tenants.outages import OUTAGES, outage_reason
from tenants.servers import MAIN

logger = logging.getLogger(__name__)


@shared_task(name=jobs.WORK)
def work(kind: str, server: str = MAIN) -> None:
    """Claim the next job of this kind on a server, and do it.

    Where no job is due, another worker has done it.
    """
    task = current_app.tasks[KINDS[kind].task]
    try:
        claimed = jobs.claim(KINDS[kind], server)
        if claimed is None:
            return
        named = bound_contextvars(task_name=task.name)  # the log names the task that it runs
        with named, tenant_scope(claimed.tenant_id, pinned=True):
            task.run(str(claimed.tenant_id), str(claimed.key))
    except OUTAGES as error:
        # The job stays queued. The traceback of an outage does not help.
        logger.warning("task %s waits: %s", task.name, outage_reason(error))
        raise Ignore from error
    except SoftTimeLimitExceeded as late:
        # The job has recorded it.
        logger.error("task %s was stopped: its time limit is over", task.name)  # noqa: TRY400
        raise Ignore from late


@shared_task
def sweep() -> int:
    """Wake workers for due jobs whose task was lost, or whose worker died."""
    try:
        return jobs.sweep()
    except OUTAGES as error:
        logger.warning("the sweep waits: %s", outage_reason(error))
        raise Ignore from error
