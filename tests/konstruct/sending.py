"""Send messages in tests as channels do."""

from typing import Any

from konstruct.orchestrator import pipeline
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from memory.models import Message
from tenants.models import Tenant


def send_message(
    tenant: Tenant,
    agent: Agent,
    content: str,
    *,
    user_id: str = "maria",
    thread_id: str = "t1",
    channel: str = "rest",
    answered: bool = True,
    **fields: Any,
) -> Message:
    """Accept a message. With `answered` the pipeline answers it immediately."""
    incoming = Incoming(agent.id, user_id, thread_id, channel, content, **fields)
    message, _ = accept(incoming, tenant_id=tenant.id)
    if answered:
        pipeline.handle(tenant_id=tenant.id, message_id=message.id)
    return message
