"""Notifications: enqueues jobs that check whether people must be notified of a row.

The code that opens an escalation, asks for consent, fails a job or requests an erasure calls
`notify` in the same transaction. `notify` enqueues a job with the id of that row. The job
(`konstruct.channels.notifications.checks`) queues the notifications of each recipient, and checks
the row again later. A tenant without recipients has no such jobs.
"""

from datetime import timedelta
from typing import Final
from uuid import UUID

from tenants.context import execute, fetch_column, required_tenant_id
from tenants.traces import traceparent

# Proposed facts are counted after this pause, once for all facts that were proposed in it.
REVIEW_PAUSE: Final = timedelta(minutes=1)
# The maximum number of open rows of each table for a new or changed recipient.
MAX_OPEN: Final = 500

_HAS_RECIPIENTS: Final = "EXISTS (SELECT FROM orchestrator_notificationrecipient WHERE is_active)"
# A running check is repeated: it may not have seen this change.
_NOTIFY: Final = f"""
INSERT INTO tenants_job AS job (tenant_id, kind, key, due_at, sweep_at, traceparent)
SELECT %(tenant_id)s, 'notification_look', key, statement_timestamp() + %(pause)s,
       statement_timestamp() + %(pause)s, %(traceparent)s::text
FROM unnest(%(keys)s::uuid[]) AS key WHERE {_HAS_RECIPIENTS}
ON CONFLICT (tenant_id, kind, key) DO UPDATE SET
    attempts = 0, begun_at = NULL, failed_at = NULL, due_at = least(job.due_at, EXCLUDED.due_at),
    sweep_at = least(job.due_at, EXCLUDED.due_at)
"""  # noqa: S608
_OPEN: Final = """
(SELECT id FROM orchestrator_escalation WHERE resolved_at IS NULL AND to_agent_id IS NULL
 ORDER BY opened_at DESC LIMIT %(limit)s)
UNION (SELECT id FROM orchestrator_toolcall WHERE state = 'waiting' AND expires_at > now()
       ORDER BY expires_at LIMIT %(limit)s)
UNION (SELECT id FROM audit_erasurerequest WHERE done_at IS NULL LIMIT %(limit)s)
UNION (SELECT id FROM audit_messageerasure WHERE done_at IS NULL LIMIT %(limit)s)
"""


def notify(*keys: UUID, pause: timedelta = timedelta(0)) -> None:
    """Check whether to notify people of rows. Call it in the transaction that changes the rows.

    One statement. Without recipients it has no effect.

    Args:
        keys: ids of escalations, tool calls, erasures or jobs; or the tenant's id, for proposed
            facts and quotas.
        pause: time until the check.
    """
    values = {
        "tenant_id": required_tenant_id(),
        "keys": sorted(keys),
        "pause": pause,
        "traceparent": traceparent(),
    }
    # No worker is woken: most checks have no result. The sweep starts them within seconds.
    execute(_NOTIFY, values)


def notify_of_reviews() -> None:
    """Check soon whether too many proposed facts wait for a review."""
    notify(required_tenant_id(), pause=REVIEW_PAUSE)


def notify_of_all_open() -> None:
    """Check all open rows, for a new or changed recipient."""
    notify(*fetch_column(_OPEN, {"limit": MAX_OPEN}), required_tenant_id())
