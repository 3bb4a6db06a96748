"""Celery tasks of delivery: one that shows a message, and the sweep of those that are late."""

import logging
from uuid import UUID

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded

from konstruct.channels.delivery import queue, worker
from tenants.celery import TenantTask
from tenants.context import tenant_scope
from tenants.enqueue import enqueue
from tenants.models import Tenant

logger = logging.getLogger(__name__)

# Per tenant and sweep: what is left comes with the next sweep, five seconds later.
SWEEP_LIMIT = 200


@shared_task(base=TenantTask)
def deliver(tenant_id: str, message_id: str) -> None:
    """Show a message in its channel. Safe to run twice, at once or later."""
    worker.deliver(tenant_id=UUID(tenant_id), message_id=UUID(message_id))


@shared_task
def sweep_deliveries() -> int:
    """Enqueue every delivery whose task was lost, whose worker died, or whose next try is due.

    Returns how many were enqueued. One tenant's trouble does not stop the others'.
    """
    enqueued = 0
    for tenant_id in list(Tenant.objects.serving().values_list("id", flat=True)):
        try:
            with tenant_scope(tenant_id):
                stale = queue.claim_stale(SWEEP_LIMIT)
        except SoftTimeLimitExceeded:
            raise  # the next sweep begins anew
        except Exception:
            logger.exception("The deliveries of tenant %s could not be swept", tenant_id)
            continue
        for message_id in stale:
            enqueue(deliver, str(tenant_id), str(message_id))
        enqueued += len(stale)
    return enqueued
