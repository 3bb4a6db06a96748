"""What becomes of an event of Slack's, before Slack is answered: written down, or ignored.

Slack waits, and so do others with it: what takes longer is a worker's (handlers.py).
"""

import logging
from dataclasses import asdict, dataclass
from enum import StrEnum
from uuid import UUID

from django.conf import settings
from django_redis import get_redis_connection
from django_redis.exceptions import ConnectionInterrupted
from redis.exceptions import RedisError

from konstruct.channels import inbox
from konstruct.channels.inbox import Put
from konstruct.channels.models import SlackInstallation
from konstruct.channels.slack.inbound.events import Addressed, Envelope, understand
from konstruct.channels.slack.workspaces.installations import CHANNEL, end
from tenants.context import tenant_scope
from tenants.limits.rate_limit import take
from tenants.models import Tenant
from tenants.redis_keys import idempotency_key
from tenants.serving.claims import find_claim
from tenants.serving.rule import refuse_unless_serving

logger = logging.getLogger(__name__)

# Slack delivers an event again within the hour, if at all.
REMEMBERED_SECONDS = 24 * 3600
ENDINGS = ("app_uninstalled", "tokens_revoked")


class Fate(StrEnum):
    """What became of an event."""

    ACCEPTED = "accepted"
    SEEN = "seen"
    IGNORED = "ignored"
    ENDED = "ended"
    LIMITED = "limited"


@dataclass(frozen=True, slots=True)
class Reception:
    """The fate of an event, and of one that came too early, in how many seconds it may come."""

    fate: Fate
    retry_after: float = 0.0


def receive(envelope: Envelope) -> Reception:
    """Do what an event asks for, in the tenant that has claimed its workspace."""
    claim = find_claim(CHANNEL, envelope.workspace)
    if claim is None:
        logger.warning("An event of the unknown Slack workspace %s is ignored", envelope.workspace)
        return Reception(Fate.IGNORED)
    if claim.tenant.state != Tenant.State.ACTIVE:
        logger.warning(
            "An event of Slack workspace %s is ignored: tenant %s is %s",
            envelope.workspace, claim.tenant.slug, claim.tenant.state,
        )  # fmt: skip
        return Reception(Fate.IGNORED)
    refuse_unless_serving(claim.tenant)  # only behind, by now: Slack sends it again
    with tenant_scope(claim.tenant_id, pinned=True):
        if _is_seen(claim.tenant_id, envelope.event_id):
            return Reception(Fate.SEEN)
        outcome = _receive(claim.tenant_id, envelope)
        if outcome.fate is not Fate.LIMITED:
            _note_seen(claim.tenant_id, envelope.event_id)
        return outcome


def _receive(tenant_id: UUID, envelope: Envelope) -> Reception:
    if envelope.event.get("type") in ENDINGS:
        return Reception(Fate.ENDED if _end(envelope) else Fate.IGNORED)
    event = understand(envelope, bot=envelope.bot or _bot_of(envelope.workspace))
    # Of what is overheard, only what is said in a thread may be for us: the thread may be engaged.
    if event is None or (event.kind is Addressed.OVERHEARD and event.begins_a_thread):
        return Reception(Fate.IGNORED)
    limit = take(
        tenant_id,
        CHANNEL,
        burst=settings.RATE_LIMIT_BURST,
        per_second=settings.RATE_LIMIT_PER_SECOND,
    )
    if not limit.allowed:
        return Reception(Fate.LIMITED, limit.retry_after)
    put = inbox.put(channel=CHANNEL, workspace=event.workspace, key=event.key, event=asdict(event))
    return Reception(Fate.SEEN if put is Put.STANDS else Fate.ACCEPTED)


def _bot_of(workspace: str) -> str:
    """Return the id of our bot, of which Slack may say nothing in an event."""
    bots = SlackInstallation.objects.connected().filter(workspace=workspace)
    return bots.values_list("bot_user_id", flat=True).first() or ""


def _end(envelope: Envelope) -> bool:
    """End the installation if the event says that its token is worth nothing any more."""
    if envelope.event["type"] == "tokens_revoked":
        tokens = envelope.event.get("tokens")
        bots = tokens.get("bot") if isinstance(tokens, dict) else None
        if not isinstance(bots, list) or _bot_of(envelope.workspace) not in bots:
            return False
    because = f"Slack says: {envelope.event['type']}"
    return end(envelope.workspace, because=because, before=envelope.at)


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
    return idempotency_key(tenant_id, event_id)
