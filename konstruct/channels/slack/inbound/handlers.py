"""What becomes of something that was said in Slack: a message to the agent, or nothing."""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings

from konstruct.channels.delivery import publisher
from konstruct.channels.models import SlackInstallation
from konstruct.channels.slack.inbound.engaged_threads import engage, is_engaged
from konstruct.channels.slack.inbound.events import Addressed, MessageEvent
from konstruct.channels.slack.inbound.parsing import attached, mentioned_users, plain_text
from konstruct.channels.slack.tasks import learn_name
from konstruct.channels.slack.users import is_to_be_asked, known_users
from konstruct.channels.slack.workspaces.installations import CHANNEL
from konstruct.orchestrator.exceptions import IdempotencyKeyReused
from konstruct.orchestrator.identities.channel_identities import user_of
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from tenants import transaction
from tenants.outbox.enqueue import enqueue

logger = logging.getLogger(__name__)

CUT = " […]"


def handle(tenant_id: UUID, told: Mapping[str, Any]) -> None:
    """Accept what was said if it is for the agent. In the tenant, and in a transaction."""
    event = MessageEvent.of(told)
    installation = (
        SlackInstallation.objects.connected()
        .select_related("agent")
        .filter(workspace=event.workspace)
        .first()
    )
    if installation is None or event.user == installation.bot_user_id:
        return
    if event.kind is Addressed.OVERHEARD and not is_engaged(tenant_id, event.thread_id):
        return
    if not installation.agent.is_active:
        logger.warning("Agent %s is inactive: a Slack message is ignored", installation.agent_id)
        return
    _accept(tenant_id, event, installation)
    transaction.on_commit(partial(engage, tenant_id, event.thread_id))


def _accept(tenant_id: UUID, event: MessageEvent, installation: SlackInstallation) -> None:
    """Let the message wait for its reply and its posts, once for its `ts`."""
    known = known_users(event.workspace, {event.user, *mentioned_users(event.text)})
    names = {slack_id: user.name for slack_id, user in known.items()}
    name = event.name or names.get(event.user, "")
    user_id = user_of(CHANNEL, event.workspace, event.user, name)
    incoming = Incoming(
        agent_id=installation.agent_id,
        user_id=user_id,
        thread_id=event.thread_id,
        channel=CHANNEL,
        content=_content(event, installation, names),
        name=name,
        idempotency_key=event.key,
    )
    address = {
        "workspace": event.workspace,
        "channel": event.channel,
        "thread_ts": event.thread_ts,
        "ts": event.ts,
    }
    try:
        message, created = accept(incoming, tenant_id=tenant_id)
    except IdempotencyKeyReused:
        return  # told of again, with a name or a file more
    if not created:
        return
    publisher.put(message, channel=CHANNEL, address=address)
    if is_to_be_asked(known.get(event.user), user_id):
        call = (str(tenant_id), event.workspace, event.user, user_id)
        transaction.on_commit(partial(enqueue, learn_name, *call))


def _content(event: MessageEvent, installation: SlackInstallation, names: Mapping[str, str]) -> str:
    """Return what was said, in words; a bare mention says the agent's name."""
    agent = installation.agent.name
    said = plain_text(event.text, bot=installation.bot_user_id, agent=agent, names=names)
    content = "\n".join(filter(None, (said, attached(event.files)))) or f"@{agent}"
    most = settings.MAX_MESSAGE_CHARACTERS
    return content if len(content) <= most else content[: most - len(CUT)] + CUT
