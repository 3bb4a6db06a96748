"""Checks rows for events that recipients want to know, and queues notifications.

One statement for each event compares the row with all recipients, by the row's id. Notifications
are unique by recipient, event, row and time, so that a check can be repeated.
"""

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from konstruct.channels.exceptions import ChannelBusy, ChannelRefused
from konstruct.channels.notifications.content import quota_id
from konstruct.orchestrator import usage
from konstruct.orchestrator.models import Event, NotificationRecipient
from memory.models import MemoryEntry
from tenants.context import fetch_value, required_tenant_id
from tenants.jobs import JobKind, Lease
from tenants.limits.quotas import Quota
from tenants.traces import traceparent

# The functions are given by name: `sending` imports this module.
CHECKS: Final = JobKind(
    "notification_look",
    do="konstruct.channels.notifications.checks.check_row",
    queue="deliveries",
    max_attempts=20,
)
NOTIFICATIONS: Final = JobKind(
    "notification",
    do="konstruct.channels.notifications.sending.send",
    queue="deliveries",
    max_attempts=20,
    first_backoff=10.0,
    max_backoff=3600.0,
    is_final=lambda error: isinstance(error, ChannelRefused),
    is_busy=lambda error: isinstance(error, ChannelBusy),
)
# The time since which the user of an open escalation waits for a person; NULL if a person has
# answered all messages.
_WAITS_SINCE: Final = """
coalesce(
    (SELECT min(message.created_at) FROM memory_message AS message
     JOIN tenants_job AS held ON held.tenant_id = message.tenant_id AND held.kind = 'reply'
      AND held.key = message.id AND held.held_for = 'person'
     WHERE message.agent_id = waiting.agent_id AND message.user_id = waiting.user_id
       AND message.thread_id = waiting.thread_id),
    CASE WHEN NOT EXISTS (
        SELECT FROM memory_message AS answer
        WHERE answer.agent_id = waiting.agent_id AND answer.user_id = waiting.user_id
          AND answer.thread_id = waiting.thread_id AND answer.role = 'assistant'
          AND answer.created_at > waiting.opened_at
          AND answer.in_reply_to_id IS DISTINCT FROM waiting.message_id
    ) THEN waiting.opened_at END
)
"""
# By event: a query for the open row with this key and the time of the event; and whether recipients
# are notified after their `wait_minutes` instead of immediately.
_SOURCES: Final[dict[Event, tuple[str, bool]]] = {
    Event.ESCALATION_OPENED: (
        "SELECT opened_at AS since, agent_id, user_id FROM orchestrator_escalation"
        " WHERE id = %(key)s AND resolved_at IS NULL AND to_agent_id IS NULL",
        False,
    ),
    Event.ESCALATION_WAITS: (
        f"SELECT {_WAITS_SINCE} AS since, agent_id, user_id FROM orchestrator_escalation AS waiting"  # noqa: S608
        " WHERE id = %(key)s AND resolved_at IS NULL AND to_agent_id IS NULL",
        True,
    ),
    Event.CONSENT_WAITS: (
        "SELECT created_at AS since, agent_id, user_id FROM orchestrator_toolcall"
        " WHERE id = %(key)s AND state = 'waiting' AND expires_at > now()",
        True,
    ),
    # Most jobs have the id of a message. A recipient is not notified of its own failure.
    Event.JOB_FAILED: (
        "SELECT failed_at AS since, message.agent_id, message.user_id FROM tenants_job AS job"
        " LEFT JOIN memory_message AS message ON message.id = job.key"
        " WHERE job.tenant_id = %(tenant_id)s AND job.key = %(key)s AND failed_at IS NOT NULL"
        " AND error_code <> 'closed'",
        False,
    ),
    Event.ERASURE_DUE: (
        "SELECT created_at AS since, agent_id, user_id FROM audit_erasurerequest"
        " WHERE id = %(key)s AND done_at IS NULL UNION ALL"
        " SELECT created_at, agent_id, user_id FROM audit_messageerasure"
        " WHERE id = %(key)s AND done_at IS NULL",
        True,
    ),
}
# Creates notifications, enqueues their sending, and returns the time until the next recipient must
# be notified. A recipient is notified of failed jobs at most once an hour: an outage has thousands.
_QUEUE: Final = """
WITH open AS ({source}), wanted AS (
    SELECT recipient.id, recipient.created_at, open.*,
           open.since + make_interval(mins => {wait}) AS at
    FROM open CROSS JOIN orchestrator_notificationrecipient AS recipient
    WHERE recipient.is_active AND %(event)s = ANY(recipient.events) AND open.since IS NOT NULL
      AND (%(event)s <> 'job_failed' OR open.since >= recipient.created_at AND NOT EXISTS (
          SELECT FROM orchestrator_notification AS earlier
          WHERE earlier.recipient_id = recipient.id AND (earlier.id = %(key)s
             OR earlier.event = 'job_failed'
                AND earlier.created_at > statement_timestamp() - interval '1 hour')))
), created AS (
    INSERT INTO orchestrator_notification
        (recipient_id, event, subject_id, occurred_at, agent_id, user_id)
    SELECT id, %(event)s, %(key)s, since, agent_id, coalesce(user_id, '')
    FROM wanted WHERE at <= statement_timestamp() ORDER BY id
    ON CONFLICT DO NOTHING
    RETURNING id
), queued AS (
    INSERT INTO tenants_job (tenant_id, kind, key, traceparent)
    SELECT %(tenant_id)s, 'notification', id, %(traceparent)s::text FROM created ORDER BY id
)
SELECT min(at) - statement_timestamp() FROM wanted WHERE at > statement_timestamp()
"""
_REVIEW: Final = """
    SELECT date_trunc('day', now(), 'UTC') AS since, NULL::uuid AS agent_id, NULL AS user_id
    WHERE %(key)s::uuid = %(tenant_id)s
"""


def check_row(job: UUID | Lease) -> None:
    """Queue the notifications of a row, and schedule the next check.

    Safe to run twice: each recipient is notified once of an event. One worker runs it at a time.
    """
    CHECKS.run(job, _check_row)


def _check_row(lease: Lease) -> None:
    key = lease.key
    with lease.transaction():
        pauses = []
        for event, (source, waits) in _SOURCES.items():
            pause = _queue(event, key, source, "wait_minutes" if waits else "0")
            if pause is not None:
                pauses.append(pause)
        if key == required_tenant_id():
            _queue_reviews(key)
            _queue_quotas()
        NOTIFICATIONS.wake_on_commit()
        if pauses and not CHECKS.jobs([key]).filter(begun_at__isnull=True).exists():
            CHECKS.postpone(key, min(pauses))
        else:
            CHECKS.finish(key, unless_requeued=True)


def _queue(event: Event, key: UUID, source: str, wait: str) -> timedelta | None:
    """Queue the due notifications; return the time until the next one, if there is one."""
    values: dict[str, Any] = {
        "event": event,
        "key": key,
        "tenant_id": required_tenant_id(),
        "traceparent": traceparent(),
    }
    return fetch_value(_QUEUE.format(source=source, wait=wait), values)


def _queue_quotas() -> None:
    """Queue a notification for each quota that the tenant has reached."""
    for name, reached in usage.tenant_row().usage.get("reached", {}).items():
        since = datetime.fromisoformat(reached["since"]).isoformat()
        source = f"SELECT '{since}'::timestamptz AS since, NULL::uuid AS agent_id, NULL AS user_id"
        _queue(Event.QUOTA_REACHED, quota_id(Quota(name)), source, "0")


def _queue_reviews(key: UUID) -> None:
    """Queue notifications for recipients whose threshold of proposed facts is reached."""
    recipients = NotificationRecipient.objects.active().filter(
        events__contains=[Event.REVIEW_QUEUE]
    )
    thresholds = list(recipients.values_list("review_threshold", flat=True))
    if not thresholds:
        return
    # Counted up to the highest threshold.
    proposed = MemoryEntry.objects.waiting_for_review().order_by().values("pk")
    count = proposed[: max(thresholds)].count()
    source = f"{_REVIEW} AND {int(count)} > 0"
    wait = f"CASE WHEN review_threshold <= {int(count)} THEN 0 END"
    _queue(Event.REVIEW_QUEUE, key, source, wait)
