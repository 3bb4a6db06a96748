"""Celery tasks of the channels: processing events that arrived, and delivering replies."""

from uuid import UUID

from celery import shared_task

from konstruct.channels import inbox
from konstruct.channels.delivery import rendering
from konstruct.channels.notifications import checks, sending
from konstruct.channels.slack import inbound  # has the tasks tell_refused and learn_name
from tenants.serving import TenantTask

# Functions that make messages of events, by channel.
HANDLERS = {inbound.CHANNEL: inbound.handle}


@shared_task(base=TenantTask)
def process(tenant_id: str, channel: str, workspace: str) -> None:
    """Process the events of a workspace. Safe to run twice, also concurrently."""
    handler = HANDLERS[channel]
    inbox.process(tenant_id=UUID(tenant_id), channel=channel, workspace=workspace, handler=handler)


@shared_task(base=TenantTask)
def process_arrival(tenant_id: str, key: str) -> None:
    """Process the events of the workspace from which the event of this job came."""
    inbox.process_arrival(tenant_id=UUID(tenant_id), key=UUID(key), handlers=HANDLERS)


@shared_task(base=TenantTask)
def deliver(tenant_id: str, message_id: str) -> None:
    """Show a message in its channel. Safe to run twice, also concurrently."""
    rendering.deliver(tenant_id=UUID(tenant_id), message_id=UUID(message_id))


@shared_task(base=TenantTask)
def look(tenant_id: str, key: str) -> None:
    """Queue the notifications of a row. Safe to run twice, also concurrently."""
    checks.check_row(UUID(key))


@shared_task(base=TenantTask)
def send_notification(tenant_id: str, notification_id: str) -> None:
    """Send a notification. After a kill, a mail may be sent twice."""
    sending.send(UUID(notification_id))
