"""Celery tasks of the orchestrator. Each takes ids, enters its tenant and calls one service."""

from uuid import UUID

from celery import shared_task

from konstruct.orchestrator import messages, pipeline, replies, usage
from konstruct.orchestrator.exceptions import MessageNotFound
from tenants import jobs, serving


@shared_task
def measure_usage() -> int:
    """Measure the usage of tenants with an old measurement. Safe to run twice."""
    return usage.measure_due()


@shared_task
def write_thread_states() -> bool:
    """Write the keys of open states of threads, if the cache has lost them. Safe to run twice."""
    return messages.write_states_after_flush()


@shared_task(base=serving.TenantTask)
def handle_message(tenant_id: str, message_id: str, lease: jobs.Lease | None = None) -> None:
    """Answer a message. Safe to run twice, also concurrently; the job table has the retries.

    Args:
        tenant_id: the tenant.
        message_id: the id of a message of a user.
        lease: of a claimed message. None: it and the other due ones of its thread are leased.
    """
    try:
        pipeline.handle(tenant_id=UUID(tenant_id), message_id=UUID(message_id), lease=lease)
    except MessageNotFound:
        replies.REPLIES.finish(UUID(message_id))  # removed, for example by a restore of this tenant
        raise


def answer_message(lease: jobs.Lease) -> None:
    """Answer a claimed message."""
    handle_message.run(str(lease.tenant_id), str(lease.key), lease)
