"""Celery tasks that ask channels for something: posts, and names of people."""

import logging
from uuid import UUID

from celery import shared_task

from konstruct.channels import deliveries, delivering, slack_users
from konstruct.orchestrator.bell import ring
from tenants.celery import TenantTask
from tenants.context import tenant_scope
from tenants.models import Tenant

logger = logging.getLogger(__name__)

# Per tenant and sweep: what is left comes with the next sweep, five seconds later.
SWEEP_LIMIT = 200


@shared_task(base=TenantTask)
def deliver(tenant_id: str, message_id: str) -> None:
    """Show a message in its channel. Safe to run twice, at once or later."""
    delivering.deliver(tenant_id=UUID(tenant_id), message_id=UUID(message_id))


@shared_task(base=TenantTask)
def learn_name(tenant_id: str, workspace: str, slack_id: str, user_id: str) -> None:
    """Ask Slack what a user is called. Nothing waits for it."""
    slack_users.learn_name(workspace, slack_id, user_id)


@shared_task
def sweep_deliveries() -> int:
    """Ring for every delivery whose bell was lost, whose worker died, or whose next try is due.

    Returns how many were rung for. One tenant's trouble does not stop the others'.
    """
    rung = 0
    for tenant_id in list(Tenant.objects.serving().values_list("id", flat=True)):
        try:
            with tenant_scope(tenant_id):
                unheard = deliveries.take_unheard(SWEEP_LIMIT)
        except Exception:
            logger.exception("The deliveries of tenant %s could not be swept", tenant_id)
            continue
        for message_id in unheard:
            ring(deliver, str(tenant_id), str(message_id))
        rung += len(unheard)
    return rung
