"""Celery tasks of the way in; and where Celery finds those of the way out."""

from uuid import UUID

from celery import shared_task

from konstruct.channels import inbox
from konstruct.channels.delivery.tasks import deliver
from konstruct.channels.slack import handlers
from konstruct.channels.slack.tasks import learn_name
from tenants.celery import TenantTask

__all__ = ["deliver", "learn_name", "take_in", "take_in_arrival"]

# Who makes messages of what arrives.
HANDLERS = {handlers.CHANNEL: handlers.hear}


@shared_task(base=TenantTask)
def take_in(tenant_id: str, channel: str, workspace: str) -> None:
    """Take in what has arrived from a workspace. Safe to run twice, at once or later."""
    inbox.take_in(
        tenant_id=UUID(tenant_id), channel=channel, workspace=workspace, hear=HANDLERS[channel]
    )


@shared_task(base=TenantTask)
def take_in_arrival(tenant_id: str, key: str) -> None:
    """Take in what has arrived from where the arrival of this entry came."""
    inbox.take_in_arrival(
        tenant_id=UUID(tenant_id), arrival_id=UUID(key).int, hear=HANDLERS.__getitem__
    )
