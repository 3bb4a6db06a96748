"""Celery tasks of the way in; and where Celery finds those of the way out."""

import logging
from uuid import UUID

from celery import shared_task

from konstruct.channels import arrivals, slack_hearing
from konstruct.channels.delivery_tasks import deliver, learn_name, sweep_deliveries
from konstruct.orchestrator.bell import ring
from tenants.celery import TenantTask
from tenants.context import tenant_scope
from tenants.models import Tenant

__all__ = ["deliver", "learn_name", "sweep_arrivals", "sweep_deliveries", "take_in"]

logger = logging.getLogger(__name__)

# Who makes messages of what arrives.
EARS = {slack_hearing.CHANNEL: slack_hearing.hear}


@shared_task(base=TenantTask)
def take_in(tenant_id: str, channel: str, workspace: str) -> None:
    """Take in what has arrived from a workspace. Safe to run twice, at once or later."""
    arrivals.take_in(
        tenant_id=UUID(tenant_id), channel=channel, workspace=workspace, hear=EARS[channel]
    )


@shared_task
def sweep_arrivals() -> int:
    """Ring for every workspace whose bell was lost, whose worker died, or whose next try is due.

    Returns how many were rung for. One tenant's trouble does not stop the others'.
    """
    rung = 0
    for tenant_id in list(Tenant.objects.serving().values_list("id", flat=True)):
        try:
            with tenant_scope(tenant_id):
                unheard = arrivals.take_unheard()
        except Exception:
            logger.exception("What has arrived for tenant %s could not be swept", tenant_id)
            continue
        for channel, workspace in unheard:
            ring(take_in, str(tenant_id), channel, workspace)
        rung += len(unheard)
    return rung
