"""Events: written in the transaction of a change, read in the order of their numbers.

An event has no number when it is written: transactions end in another order than they insert, and a
program that has read up to a number would miss an event that is committed later with a smaller one.
`events_after` numbers all committed events, one caller at a time, before it reads.
"""

from collections.abc import Collection
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from tenants import context, transaction
from tenants.outbox.models import NOTIFICATIONS, EventDelivery, EventType, OutboxEvent
from tenants.traces import traceparent

# Events are kept for this time.
RETENTION: Final = timedelta(days=30)
# Events that are removed, or numbered, at once.
MAX_AT_ONCE: Final = 10_000

# The deliveries of `event` and their jobs. People get some events later, so that they are sent only
# if they are still true: what waits after `wait_minutes`, and proposed facts, at most once a day
# (UTC), after a minute. An outage fails thousands of jobs: each subscription gets one an hour, and
# none of its own deliveries.
_DELIVER: Final = """
, due AS (
    SELECT subscription.id AS subscription_id, event.id AS event_id, event.created_at + CASE
        WHEN target = 'webhook' THEN interval '0'
        WHEN event.type IN ('escalation.waiting', 'tool_call.waiting', 'erasure.requested')
        THEN make_interval(mins => wait_minutes)
        WHEN event.type = 'fact.proposed' THEN interval '1 minute'
        ELSE interval '0' END AS due_at
    FROM event JOIN outbox_subscription AS subscription
      ON is_active AND (types = '{}' OR event.type = ANY (types))
    WHERE (%(subscription_id)s::uuid IS NULL OR subscription.id = %(subscription_id)s)
      AND NOT EXISTS (
        SELECT FROM outbox_eventdelivery AS earlier
        JOIN outbox_outboxevent AS sent ON sent.id = earlier.event_id
        WHERE earlier.subscription_id = subscription.id AND (
            event.type = 'job.failed' AND earlier.id = event.subject_id
            OR sent.type = event.type AND earlier.created_at > CASE
                WHEN sent.type = 'job.failed' THEN statement_timestamp() - interval '1 hour'
                WHEN sent.type = 'fact.proposed' AND target <> 'webhook'
                THEN date_trunc('day', statement_timestamp(), 'UTC')
                ELSE 'infinity' END
        )
    )
), delivery AS (
    INSERT INTO outbox_eventdelivery AS delivery (subscription_id, event_id)
    SELECT subscription_id, event_id FROM due
    ON CONFLICT (subscription_id, event_id) DO UPDATE SET event_id = EXCLUDED.event_id
    WHERE delivery.delivered_at IS NULL
    RETURNING id, subscription_id, event_id
)
INSERT INTO tenants_job AS job (tenant_id, kind, key, due_at, sweep_at, traceparent)
SELECT %(tenant_id)s, 'notification', id, due_at, due_at, %(traceparent)s::text
FROM delivery JOIN due USING (subscription_id, event_id)
ON CONFLICT (tenant_id, kind, key) DO UPDATE
SET due_at = EXCLUDED.due_at, sweep_at = EXCLUDED.sweep_at
WHERE job.attempts = 0 AND job.failed_at IS NULL
"""
_RECORD: Final = (
    """
WITH event AS (
    INSERT INTO outbox_outboxevent (type, subject_id, agent_id, user_id, thread_id, detail)
    VALUES (%(type)s, %(subject_id)s, %(agent_id)s, %(user_id)s, %(thread_id)s, %(detail)s)
    RETURNING id, type, subject_id, created_at
)"""  # noqa: S608 (constants)
    + _DELIVER
)
_SEND_EARLIER: Final = (
    """
WITH event AS (
    SELECT id, type, subject_id, created_at FROM outbox_outboxevent
    WHERE subject_id = ANY (%(subjects)s::uuid[]) AND type = ANY (%(types)s::text[])
)"""  # noqa: S608 (constants)
    + _DELIVER
)
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


def record_event(
    type: EventType,
    subject_id: UUID,
    *,
    about: Any = None,
    agent_id: UUID | None = None,
    user_id: str = "",
    detail: str = "",
) -> None:
    """Record an event, and enqueue its deliveries. Call it in the change's transaction.

    Args:
        type: of the event.
        subject_id: id of the message, escalation, fact …
        about: a row with an agent, a user and a thread, such as a message; None: there is none.
        agent_id: the agent, of an event without a conversation.
        user_id: the user, of an event without a conversation.
        detail: id of the message with an answer or with a tool call, or name of a quota.
    """
    _deliver(
        _RECORD,
        type=str(type),
        subject_id=subject_id,
        agent_id=about.agent_id if about else agent_id,
        user_id=about.user_id if about else user_id,
        thread_id=about.thread_id if about else "",
        detail=detail,
    )


def send_earlier(
    subscription_id: UUID, subjects: Collection[UUID], types: Collection[EventType]
) -> None:
    """Send earlier events to a new or changed subscription, in the transaction of the change.

    Args:
        subscription_id: the subscription.
        subjects: ids of the events' objects.
        types: of the events.
    """
    _deliver(
        _SEND_EARLIER, subscription_id=subscription_id, subjects=list(subjects), types=list(types)
    )


def _deliver(statement: str, *, subscription_id: UUID | None = None, **values: Any) -> None:
    of_tenant = {"tenant_id": context.required_tenant_id(), "traceparent": traceparent()}
    if context.execute(statement, {"subscription_id": subscription_id, **values, **of_tenant}):
        NOTIFICATIONS.wake_on_commit()


def remove_old_events() -> None:
    """Remove events that are older than RETENTION, with their deliveries."""
    old = OutboxEvent.objects.filter(created_at__lt=timezone.now() - RETENTION)
    ids = list(old.order_by("created_at").values_list("pk", flat=True)[:MAX_AT_ONCE])
    if not ids:
        return
    deliveries = EventDelivery.objects.filter(event__in=ids)
    with transaction.atomic():
        NOTIFICATIONS.jobs().filter(key__in=deliveries.values("pk")).delete()
        deliveries.delete()
        OutboxEvent.objects.filter(pk__in=ids).delete()


def events_after(number: int) -> QuerySet[OutboxEvent]:
    """Return the events with greater numbers, in order. An event that is committed later follows.

    Call it in a transaction.
    """
    if OutboxEvent.objects.filter(number=None).exists() and context.fetch_value(_TRY_LOCK):
        context.execute(_NUMBER, {"limit": MAX_AT_ONCE})
    return OutboxEvent.objects.filter(number__gt=number).order_by("number")
