"""Webhooks: programs, to which events are sent as Standard Webhooks; and deliveries of all events.

A delivery has a job, also one to people. The POST to a program has the id of the event in
`webhook-id`, the same at each attempt, and one signature by each secret that is valid. A status
from 200 to 299 accepts the event. Attempts end after a day, and at once for a status of 410 and for
an address that is refused.
"""

import json
import os
from base64 import b64encode
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID, uuid4

from django.conf import settings
from django.db.models import F, QuerySet, functions
from django.utils import timezone
from standardwebhooks import Webhook as Signer

from konstruct.channels import notifications
from konstruct.channels.delivery import ChannelRefused, ChannelUnavailable
from konstruct.orchestrator.models import ToolCall
from konstruct.orchestrator.usage import require_fewer
from konstruct.outgoing import AddressRefused, check_url, post
from memory.arguments import text_argument
from memory.models import MemoryEntry, Message
from tenants import context, jobs, transaction
from tenants.outbox.models import (
    NOTIFICATIONS,
    EventDelivery,
    EventType,
    OutboxEvent,
    ReceiverRefused,
    Subscription,
    Target,
)
from tenants.secret_keys import decrypt, encrypt

SECRET_BYTES: Final = 32
# How long events are signed by the previous secret too.
OVERLAP: Final = timedelta(days=1)
# Time of a request. Standard Webhooks recommends 15 to 30 seconds.
SECONDS: Final = 15.0
GONE: Final = 410
# Subscriptions of a tenant, also those of people: each event is sent to all that match.
MAX_WEBHOOKS: Final = 50
# Permissions to read what webhooks send: a person without them may not create one.
READS: Final = ("memory.view_message", "memory.view_memoryentry")


def webhooks() -> QuerySet[Subscription]:
    """Return the subscriptions of programs."""
    return Subscription.objects.filter(target=Target.WEBHOOK)


def check_address(url: str) -> None:
    """Refuse a URL that no event can be sent to.

    Raises:
        AddressRefused: as `check_url`; or the deployment has no keys for the secrets of webhooks.
    """
    check_url(url)
    if not settings.CHANNEL_TOKEN_KEYS:
        raise AddressRefused(
            "This deployment cannot keep secrets of webhooks: its operator has to set"
            " CHANNEL_TOKEN_KEYS."
        )


def create_webhook(
    url: str,
    *,
    types: Sequence[str] = (),
    includes_content: bool = False,
    description: str = "",
    is_active: bool = True,
    webhook_id: UUID | None = None,
) -> tuple[Subscription, str]:
    """Create a webhook.

    Args:
        url: address of the program.
        types: types of events; empty: all.
        includes_content: whether texts are sent.
        description: for people.
        is_active: whether events are sent.
        webhook_id: its id; by default a random one.

    Returns:
        The webhook, and its secret, which is shown once.

    Raises:
        AddressRefused: the URL is refused.
        LimitReached: the tenant has MAX_WEBHOOKS.
        InvalidArgument: the description cannot be stored.
    """
    check_address(url)
    require_fewer(Subscription.objects.all(), MAX_WEBHOOKS)
    webhook = Subscription(
        pk=webhook_id or uuid4(),
        url=url,
        types=sorted(set(types)),
        includes_content=includes_content,
        description=text_argument("description", description),
        is_active=is_active,
    )
    secret = _set_new_secret(webhook)
    webhook.save()
    return webhook, secret


def rotate_secret(webhook_id: UUID) -> tuple[Subscription, str]:
    """Replace the secret of a webhook; the previous one is valid for OVERLAP. Returns the new one.

    Raises:
        Subscription.DoesNotExist: no webhook has this id.
    """
    with transaction.atomic():
        webhook = webhooks().select_for_update().get(pk=webhook_id)
        webhook.previous_secret, webhook.previous_until = webhook.secret, functions.Now() + OVERLAP
        secret = _set_new_secret(webhook)
        webhook.save(update_fields=["secret", "previous_secret", "previous_until"])
    webhook.refresh_from_db()
    return webhook, secret


def delete_subscription(subscription: Subscription) -> None:
    """Delete a subscription with its deliveries, in the caller's transaction."""
    deliveries = EventDelivery.objects.filter(subscription=subscription)
    NOTIFICATIONS.jobs().filter(key__in=deliveries.values("pk")).delete()
    deliveries.delete()
    subscription.delete()


def send_again(delivery: EventDelivery) -> None:
    """Send an event once more, also one that was delivered."""
    with transaction.atomic():
        # Workers lock the job first, too.
        NOTIFICATIONS.enqueue_again(delivery.pk)
        EventDelivery.objects.filter(pk=delivery.pk).update(delivered_at=None)


def send(job: UUID | jobs.Lease) -> None:
    """Send an event to its subscription. One worker sends it at a time."""
    NOTIFICATIONS.run(job, _send)


def _send(lease: jobs.Lease) -> None:
    rows = EventDelivery.objects.filter(pk=lease.key)
    delivery = rows.select_related("subscription", "event").first()
    try:
        if delivery is None or not delivery.subscription.is_active:
            is_sent = False
        elif delivery.subscription.target == Target.WEBHOOK:
            is_sent = _post(lease, delivery)
        else:
            is_sent = notifications.send(delivery, is_repeated=lease.token > 1)
    except (AddressRefused, ChannelRefused) as error:
        raise ReceiverRefused(str(error)) from error
    with lease.transaction():
        if is_sent:
            rows.update(delivered_at=functions.Now())
        else:
            rows.delete()
        lease.finish()


def _post(lease: jobs.Lease, delivery: EventDelivery) -> bool:
    webhook = delivery.subscription
    content = document(delivery.event, includes_content=webhook.includes_content)
    body = json.dumps(content, ensure_ascii=False)
    status = post(webhook.url, body.encode(), _headers(delivery, body), seconds=SECONDS)
    with lease.transaction():
        EventDelivery.objects.filter(pk=delivery.pk).update(status=status)
    if status == GONE:
        raise ChannelRefused("The receiver answered 410: it wants no more events.")
    if not 200 <= status < 300:
        raise ChannelUnavailable(f"The receiver answered with the status {status}.")
    return True


def document(event: OutboxEvent, *, includes_content: bool = False) -> dict[str, Any]:
    """Return an event as JSON: in webhooks, and in the API's list of events."""
    data: dict[str, Any] = {
        "id": str(event.subject_id),
        "agent_id": None if event.agent_id is None else str(event.agent_id),
        "user_id": event.user_id or None,
        "thread_id": event.thread_id or None,
    }
    if event.detail:
        data["quota" if event.type == EventType.QUOTA_REACHED else "message_id"] = event.detail
    if includes_content:
        data |= _content(event)
    return {
        "id": str(event.pk),
        "type": event.type,
        "timestamp": event.created_at.isoformat(),
        "data": data,
    }


def _content(event: OutboxEvent) -> dict[str, Any]:
    """Return the texts of the event's object as they are now; none of an erased one."""
    values: Any = {}
    match event.type:
        case EventType.MESSAGE_ANSWERED:
            messages = Message.objects.filter(pk=event.subject_id)
            values = messages.values("content", reply_content=F("reply__content")).first()
        case EventType.ESCALATION_ANSWERED:
            answers = Message.objects.filter(pk=event.detail)
            values = answers.values("content", "name").first()
        case EventType.FACT_PROPOSED | EventType.FACT_ACTIVE | EventType.FACT_SUPERSEDED:
            values = MemoryEntry.objects.filter(pk=event.subject_id).values("content").first()
        case EventType.TOOL_CALL_WAITING:
            calls = ToolCall.objects.filter(pk=event.subject_id)
            values = calls.values("name", "arguments", "question").first()
    return dict(values or {})


def _headers(delivery: EventDelivery, body: str) -> dict[str, str]:
    now = timezone.now()
    webhook, event_id = delivery.subscription, str(delivery.event_id)
    secrets = [webhook.secret]
    if webhook.previous_until is not None and webhook.previous_until > now:
        secrets.append(webhook.previous_secret)
    tenant_id, place = context.required_tenant_id(), f"webhook {webhook.pk}"
    keys = [decrypt(secret, tenant_id=tenant_id, place=place) for secret in secrets]
    signatures = [Signer(key).sign(event_id, now, body) for key in keys]
    return {
        "Content-Type": "application/json",
        "User-Agent": "Konstruct",
        "webhook-id": event_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def _set_new_secret(webhook: Subscription) -> str:
    secret, place = "whsec_" + b64encode(os.urandom(SECRET_BYTES)).decode(), f"webhook {webhook.pk}"
    webhook.secret = encrypt(secret, tenant_id=context.required_tenant_id(), place=place)
    return secret
