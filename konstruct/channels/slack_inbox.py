"""What becomes of an event of Slack's: accepted as a message, a workspace's end, or nothing."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django_redis import get_redis_connection
from django_redis.exceptions import ConnectionInterrupted
from redis.exceptions import RedisError

from konstruct.channels import outlet
from konstruct.channels.models import SlackInstallation
from konstruct.channels.slack_events import Envelope, Heard, Kind, understand
from konstruct.channels.slack_installations import CHANNEL, end
from konstruct.channels.slack_reading import attached, mentioned_users, plain_text
from konstruct.channels.slack_threads import engage, is_engaged
from konstruct.channels.slack_users import is_to_be_asked, known_users
from konstruct.channels.tasks import learn_name
from konstruct.orchestrator.bell import ring
from konstruct.orchestrator.exceptions import IdempotencyKeyReused
from konstruct.orchestrator.intake import Incoming, accept
from tenants.claims import tenant_of_workspace
from tenants.context import tenant_scope
from tenants.exceptions import TenantNotServing, UnknownTenant
from tenants.rate_limit import take
from tenants.redis_keys import escape_part, idempotency_key
from tenants.serving import require_serving

logger = logging.getLogger(__name__)

# Slack delivers an event again within the hour, if at all.
REMEMBERED_SECONDS = 24 * 3600
CUT = " […]"


class Fate(StrEnum):
    """What became of an event."""

    ACCEPTED = "accepted"
    SEEN = "seen"
    IGNORED = "ignored"
    ENDED = "ended"
    LIMITED = "limited"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The fate of an event, and of one that came too early, in how many seconds it may come."""

    fate: Fate
    retry_after: float = 0.0


def receive(envelope: Envelope) -> Outcome:
    """Do what an event asks for, in the tenant that has claimed its workspace."""
    tenant_id = tenant_of_workspace(CHANNEL, envelope.workspace)
    if tenant_id is None:
        logger.warning("An event of the unknown Slack workspace %s is ignored", envelope.workspace)
        return Outcome(Fate.IGNORED)
    with tenant_scope(tenant_id, pinned=True):
        try:
            require_serving(tenant_id)
        except (UnknownTenant, TenantNotServing) as refusal:
            logger.warning("An event of Slack workspace %s: %s", envelope.workspace, refusal)
            return Outcome(Fate.IGNORED)
        if _is_seen(tenant_id, envelope.event_id):
            return Outcome(Fate.SEEN)
        outcome = _receive(tenant_id, envelope)
        if outcome.fate is not Fate.LIMITED:
            _note_seen(tenant_id, envelope.event_id)
        return outcome


def _receive(tenant_id: UUID, envelope: Envelope) -> Outcome:
    installation = (
        SlackInstallation.objects.connected()
        .select_related("agent")
        .filter(workspace=envelope.workspace)
        .first()
    )
    if installation is None:
        return Outcome(Fate.IGNORED)
    if _ends(envelope, installation):
        because = f"Slack says: {envelope.event['type']}"
        ended = end(envelope.workspace, because=because, before=envelope.at)
        return Outcome(Fate.ENDED if ended else Fate.IGNORED)
    heard = understand(envelope, bot=installation.bot_user_id)
    if heard is None:
        return Outcome(Fate.IGNORED)
    if heard.kind is Kind.OVERHEARD and not is_engaged(tenant_id, heard.thread_id):
        return Outcome(Fate.IGNORED)
    if not installation.agent.is_active:
        logger.warning("Agent %s is inactive: a Slack message is ignored", installation.agent_id)
        return Outcome(Fate.IGNORED)
    limit = take(
        tenant_id,
        CHANNEL,
        burst=settings.RATE_LIMIT_BURST,
        per_second=settings.RATE_LIMIT_PER_SECOND,
    )
    if not limit.allowed:
        return Outcome(Fate.LIMITED, limit.retry_after)
    created = _accept(tenant_id, heard, installation)
    engage(tenant_id, heard.thread_id)
    return Outcome(Fate.ACCEPTED if created else Fate.SEEN)


def _accept(tenant_id: UUID, heard: Heard, installation: SlackInstallation) -> bool:
    """Let the message wait for its reply and its posts, in one transaction, once for its `ts`."""
    user_id = heard.user
    known = known_users(heard.workspace, {heard.user, *mentioned_users(heard.text)})
    names = {slack_id: user.name for slack_id, user in known.items()}
    incoming = Incoming(
        agent_id=installation.agent_id,
        user_id=user_id,
        thread_id=heard.thread_id,
        channel=CHANNEL,
        content=_content(heard, installation, names),
        name=heard.name or names.get(heard.user, ""),
        idempotency_key=heard.key,
    )
    address = {
        "workspace": heard.workspace,
        "channel": heard.channel,
        "thread_ts": heard.thread_ts,
        "ts": heard.ts,
    }
    with transaction.atomic():
        try:
            message, created = accept(incoming, tenant_id=tenant_id)
        except IdempotencyKeyReused:
            return False  # told of again, with a name or a file more
        if created:
            outlet.put(message, channel=CHANNEL, address=address)
    if created and is_to_be_asked(known.get(heard.user), user_id):
        ring(learn_name, str(tenant_id), heard.workspace, heard.user, user_id)
    return created


def _content(heard: Heard, installation: SlackInstallation, names: Mapping[str, str]) -> str:
    """Return what was said, in words; a bare mention says the agent's name."""
    agent = installation.agent.name
    said = plain_text(heard.text, bot=installation.bot_user_id, agent=agent, names=names)
    content = "\n".join(filter(None, (said, attached(heard.files)))) or f"@{agent}"
    most = settings.MAX_MESSAGE_CHARACTERS
    return content if len(content) <= most else content[: most - len(CUT)] + CUT


def _ends(envelope: Envelope, installation: SlackInstallation) -> bool:
    """Tell whether the event says that our token is worth nothing any more."""
    if envelope.event.get("type") == "app_uninstalled":
        return True
    if envelope.event.get("type") != "tokens_revoked":
        return False
    tokens = envelope.event.get("tokens")
    bots = tokens.get("bot") if isinstance(tokens, dict) else None
    return isinstance(bots, list) and installation.bot_user_id in bots


def _is_seen(tenant_id: UUID, event_id: str) -> bool:
    """Tell whether the event has come before, as far as the cache knows: the quick way out.

    What it does not know, the transcript does, where a message has its key once.
    """
    try:
        return bool(get_redis_connection("default").exists(_seen_key(tenant_id, event_id)))
    except (RedisError, ConnectionInterrupted) as error:
        logger.warning("Whether Slack's event %s was seen: %s", event_id, error)
        return False


def _note_seen(tenant_id: UUID, event_id: str) -> None:
    try:
        get_redis_connection("default").set(
            _seen_key(tenant_id, event_id), 1, ex=REMEMBERED_SECONDS
        )
    except (RedisError, ConnectionInterrupted) as error:
        logger.warning("Slack's event %s was not noted as seen: %s", event_id, error)


def _seen_key(tenant_id: UUID, event_id: str) -> str:
    return idempotency_key(tenant_id, escape_part(event_id))
