"""Celery tasks of the way in; and where Celery finds those of the way out."""

import logging
from uuid import UUID

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded

from konstruct.channels import inbox
from konstruct.channels.delivery.tasks import deliver, sweep_deliveries
from konstruct.channels.slack import handlers
from konstruct.channels.slack.tasks import learn_name
from tenants.celery import TenantTask
from tenants.context import tenant_scope
from tenants.enqueue import enqueue
from tenants.models import Tenant

__all__ = ["deliver", "learn_name", "sweep_arrivals", "sweep_deliveries", "take_in"]

logger = logging.getLogger(__name__)

# Who makes messages of what arrives.
HANDLERS = {handlers.CHANNEL: handlers.hear}


@shared_task(base=TenantTask)
def take_in(tenant_id: str, channel: str, workspace: str) -> None:
    """Take in what has arrived from a workspace. Safe to run twice, at once or later."""
    inbox.take_in(
        tenant_id=UUID(tenant_id), channel=channel, workspace=workspace, hear=HANDLERS[channel]
    )


@shared_task
def sweep_arrivals() -> int:
    """Enqueue every workspace whose task was lost, whose worker died, or whose next try is due.

    Returns how many were enqueued. One tenant's trouble does not stop the others'.
    """
    enqueued = 0
    for tenant_id in list(Tenant.objects.serving().values_list("id", flat=True)):
        try:
            with tenant_scope(tenant_id):
                stale = inbox.claim_stale()
        except SoftTimeLimitExceeded:
            raise  # the next sweep begins anew
        except Exception:
            logger.exception("What has arrived for tenant %s could not be swept", tenant_id)
            continue
        for channel, workspace in stale:
            enqueue(take_in, str(tenant_id), channel, workspace)
        enqueued += len(stale)
    return enqueued
