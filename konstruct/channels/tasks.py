"""Celery tasks of the way in; and where Celery finds those of the way out."""

from uuid import UUID

from celery import shared_task

from konstruct.channels import inbox
from konstruct.channels.delivery.tasks import deliver
from konstruct.channels.slack import inbound
from konstruct.channels.slack.users import learn_name
from tenants.serving.tenant_task import TenantTask

__all__ = ["deliver", "learn_name", "process", "process_arrival"]

# Who makes messages of what arrives.
HANDLERS = {inbound.CHANNEL: inbound.handle}


# Both have the names under which messages wait that an older version has sent.
@shared_task(base=TenantTask, name="konstruct.channels.tasks.take_in")
def process(tenant_id: str, channel: str, workspace: str) -> None:
    """Process what has arrived from a workspace. Safe to run twice, at once or later."""
    handler = HANDLERS[channel]
    inbox.process(tenant_id=UUID(tenant_id), channel=channel, workspace=workspace, handler=handler)


@shared_task(base=TenantTask, name="konstruct.channels.tasks.take_in_arrival")
def process_arrival(tenant_id: str, key: str) -> None:
    """Process what has arrived from where the arrival of this entry came."""
    arrival_id = UUID(key).int
    inbox.process_arrival(tenant_id=UUID(tenant_id), arrival_id=arrival_id, handlers=HANDLERS)
