"""Celery tasks of the orchestrator: each takes ids, enters its tenant and calls one service."""

import logging
from uuid import UUID

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded

from konstruct.orchestrator import pipeline
from konstruct.orchestrator.replies import outbox
from konstruct.orchestrator.tools import tool_calls
from tenants.celery import TenantTask
from tenants.context import tenant_scope
from tenants.enqueue import enqueue
from tenants.models import Tenant

logger = logging.getLogger(__name__)

# Per tenant and sweep: what is left comes with the next sweep, five seconds later.
SWEEP_LIMIT = 200


@shared_task(base=TenantTask)
def handle_message(tenant_id: str, message_id: str) -> None:
    """Answer a message. Safe to run twice, at once or later; the outbox owns the retries."""
    next_id = pipeline.handle(tenant_id=UUID(tenant_id), message_id=UUID(message_id))
    if next_id is not None:
        enqueue(handle_message, tenant_id, str(next_id))


@shared_task
def sweep_replies() -> int:
    """Enqueue every message whose task was lost, whose worker died, or whose next try is due.

    Tool calls to which nobody consented in time expire first, which lets their messages go.

    Returns how many were enqueued. One tenant's trouble does not stop the others'.
    """
    enqueued = 0
    for tenant_id in list(Tenant.objects.serving().values_list("id", flat=True)):
        try:
            with tenant_scope(tenant_id):
                tool_calls.expire_overdue(SWEEP_LIMIT)
                stale = outbox.claim_stale(SWEEP_LIMIT)
        except SoftTimeLimitExceeded:
            raise  # the next sweep begins anew
        except Exception:
            logger.exception("The replies of tenant %s could not be swept", tenant_id)
            continue
        for message_id in stale:
            enqueue(handle_message, str(tenant_id), str(message_id))
        enqueued += len(stale)
    return enqueued
