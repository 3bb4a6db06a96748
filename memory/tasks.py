"""Celery tasks of memory. Each enters its tenant and calls one service."""

from uuid import UUID

from celery import shared_task

from memory import indexing
from memory.conf import OUTBOX_TASK_LIMIT
from tenants.serving import TenantTask


@shared_task(base=TenantTask)
def embed_and_store(tenant_id: UUID | str, message_ids: list[str] | None = None) -> int:
    """Embed and store these messages, or all queued ones; return the number of stored messages.

    It can be run twice, at the same time or later: the queue has the work. If there is more than
    one task should do, the next task is enqueued, behind those of other tenants.
    """
    done = indexing.drain(tenant_id, message_ids, limit=OUTBOX_TASK_LIMIT)
    if done.more:
        embed_and_store.apply_async((str(tenant_id), message_ids), retry=False)
    return done.stored
