"""Events: written in the transaction of a change, read in the order of their numbers.

An event has no number when it is written: transactions end in another order than they insert, and a
program that has read up to a number would miss an event that is committed later with a smaller one.
`events_after` numbers all committed events, one caller at a time, before it reads.
"""

from datetime import timedelta
from typing import Final, Protocol
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from tenants import transaction
from tenants.context import execute, fetch_value, required_tenant_id
from tenants.outbox.models import WEBHOOKS, EventType, OutboxEvent, WebhookDelivery
from tenants.traces import traceparent

# Events are kept for this time.
RETENTION: Final = timedelta(days=30)
# Events that are removed, or numbered, at once.
MAX_AT_ONCE: Final = 10_000

_RECORD: Final = """
WITH event AS (
    INSERT INTO outbox_outboxevent (type, subject_id, agent_id, user_id, thread_id, detail)
    VALUES (%(type)s, %(subject_id)s, %(agent_id)s, %(user_id)s, %(thread_id)s, %(detail)s)
    RETURNING id
), delivery AS (
    INSERT INTO outbox_webhookdelivery (webhook_id, event_id)
    SELECT webhook.id, event.id FROM outbox_webhook AS webhook, event
    WHERE webhook.is_active AND (webhook.types = '{}' OR %(type)s::text = ANY (webhook.types))
    RETURNING id
)
INSERT INTO tenants_job (tenant_id, kind, key, traceparent)
SELECT %(tenant_id)s, 'webhook', id, %(traceparent)s::text FROM delivery
"""
_TRY_LOCK: Final = "SELECT public.try_tenant_lock('events')"
# Greater than all numbers before, also after the last events were erased, or a backup was restored.
_NUMBER: Final = """
UPDATE outbox_outboxevent AS event SET number = numbered.number
FROM (
    SELECT id, row_number() OVER (ORDER BY created_at, id) + greatest(
        (SELECT max(number) FROM outbox_outboxevent),
        (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    ) AS number
    FROM (
        SELECT id, created_at FROM outbox_outboxevent WHERE number IS NULL
        ORDER BY created_at, id LIMIT %(limit)s
    ) AS oldest
) AS numbered
WHERE event.id = numbered.id
"""


class InThread(Protocol):
    """A row or value of a conversation, such as a message."""

    @property
    def agent_id(self) -> UUID: ...
    @property
    def user_id(self) -> str: ...
    @property
    def thread_id(self) -> str: ...


def record_event(
    type: EventType,
    subject_id: UUID,
    *,
    about: InThread | None = None,
    agent_id: UUID | None = None,
    user_id: str = "",
    detail: str = "",
) -> None:
    """Record an event, and enqueue its deliveries to webhooks. Call it in the change's transaction.

    Args:
        type: of the event.
        subject_id: id of the message, escalation, fact …
        about: has the agent, the user and the conversation.
        agent_id: the agent, of an event without a conversation.
        user_id: the user, of an event without a conversation.
        detail: id of the message with an answer, or name of a quota.
    """
    values = {
        "type": str(type),
        "subject_id": subject_id,
        "agent_id": about.agent_id if about else agent_id,
        "user_id": about.user_id if about else user_id,
        "thread_id": about.thread_id if about else "",
        "detail": detail,
        "tenant_id": required_tenant_id(),
        "traceparent": traceparent(),
    }
    if execute(_RECORD, values):
        WEBHOOKS.wake_on_commit()


def remove_old_events() -> None:
    """Remove events that are older than RETENTION, with their deliveries."""
    old = OutboxEvent.objects.filter(created_at__lt=timezone.now() - RETENTION)
    ids = list(old.order_by("created_at").values_list("pk", flat=True)[:MAX_AT_ONCE])
    if not ids:
        return
    deliveries = WebhookDelivery.objects.filter(event__in=ids)
    with transaction.atomic():
        WEBHOOKS.jobs().filter(key__in=deliveries.values("pk")).delete()
        deliveries.delete()
        OutboxEvent.objects.filter(pk__in=ids).delete()


def events_after(number: int) -> QuerySet[OutboxEvent]:
    """Return the events with greater numbers, in order. An event that is committed later follows.

    Call it in a transaction.
    """
    if OutboxEvent.objects.filter(number=None).exists() and fetch_value(_TRY_LOCK):
        execute(_NUMBER, {"limit": MAX_AT_ONCE})
    return OutboxEvent.objects.filter(number__gt=number).order_by("number")
