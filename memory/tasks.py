"""Celery tasks of memory: each enters its tenant and calls one service."""

import logging
from uuid import UUID

from celery import Task, shared_task
from celery.exceptions import SoftTimeLimitExceeded

from memory.conf import OUTBOX_TASK_LIMIT
from memory.indexing import outbox
from tenants.celery import TenantTask
from tenants.context import tenant_scope
from tenants.models import Tenant

logger = logging.getLogger(__name__)


@shared_task(bind=True, base=TenantTask)
def embed_and_store(self: Task, tenant_id: UUID | str, message_ids: list[str] | None = None) -> int:
    """Embed and store these messages, or whatever waits; how many were stored.

    Safe to run twice, at once or later: the outbox says what is to be done. Where more waits than
    one task should do, the next one is enqueued, behind those of other tenants.
    """
    # Delivered again because its worker died: over one of these messages, for all we know.
    alone = bool((self.request.delivery_info or {}).get("redelivered"))
    done = outbox.drain(tenant_id, message_ids, limit=OUTBOX_TASK_LIMIT, alone=alone)
    if done.more:
        embed_and_store.apply_async((str(tenant_id), message_ids), retry=False)
    return done.stored


@shared_task
def sweep_embeddings() -> int:
    """Enqueue what no task has stored in time: its message got lost, or its worker did.

    A tenant with nothing due costs one query. One tenant's trouble does not stop the others'.
    """
    swept = 0
    for tenant_id in list(Tenant.objects.serving().values_list("id", flat=True)):
        try:
            with tenant_scope(tenant_id):
                due = outbox.take_due()
            if due:
                ids = [str(message_id) for message_id in due]
                embed_and_store.apply_async((str(tenant_id), ids), retry=False)
                swept += len(due)
        except SoftTimeLimitExceeded:
            raise  # the next sweep begins anew
        except Exception:
            logger.exception("the embeddings of tenant %s could not be swept", tenant_id)
    return swept
