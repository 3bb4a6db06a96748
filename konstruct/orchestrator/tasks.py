"""Celery tasks of the orchestrator: each takes ids, enters its tenant and calls one service."""

from uuid import UUID

from celery import shared_task

from konstruct.orchestrator import pipeline
from tenants.celery import TenantTask


@shared_task(base=TenantTask)
def handle_message(tenant_id: str, message_id: str) -> None:
    """Answer a message. Safe to run twice, at once or later; the outbox owns the retries."""
    pipeline.handle(tenant_id=UUID(tenant_id), message_id=UUID(message_id))
