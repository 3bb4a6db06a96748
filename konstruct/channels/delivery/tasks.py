"""Celery task of delivery: it shows a message."""

from uuid import UUID

from celery import shared_task

from konstruct.channels.delivery import worker
from tenants.serving.tenant_task import TenantTask


@shared_task(base=TenantTask)
def deliver(tenant_id: str, message_id: str) -> None:
    """Show a message in its channel. Safe to run twice, at once or later."""
    worker.deliver(tenant_id=UUID(tenant_id), message_id=UUID(message_id))
