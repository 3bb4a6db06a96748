"""The queue of extractions: a conversation with new messages has a job until they are processed.

The job's key is the id of the conversation's `ExtractionCursor`. It is enqueued in the transaction
that writes messages, or after it, with a lock on the row: a worker that finds no further messages
and removes the job has seen every message that was written before.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final
from uuid import UUID

from konstruct.llm.exceptions import LLMRefused
from konstruct.orchestrator.messages import Thread
from tenants.context import execute
from tenants.jobs import JobKind
from tenants.traces import traceparent

EXTRACTIONS: Final = JobKind(
    name="extraction",
    # Given by name: the runs import this module.
    do="konstruct.orchestrator.extraction.runs.extract",
    queue="extractions",
    max_attempts=5,  # pauses double from a minute: a quarter of an hour
    first_backoff=60.0,
    max_backoff=6 * 3600.0,
    is_final=lambda error: isinstance(error, LLMRefused),
)

# A failed job gets new attempts with a new message, at most once a day. The row of every other job
# is locked, too.
_ENQUEUE: Final = """
WITH wanted AS (
    SELECT DISTINCT user_id, agent.id AS agent_id, thread_id, lane, newest,
           make_interval(secs => agent.extraction_idle_seconds) AS idle
    FROM unnest(
        %(agents)s::uuid[], %(users)s::text[], %(threads)s::text[], %(lanes)s::uuid[],
        %(newest)s::timestamptz[]
    ) AS thread (agent_id, user_id, thread_id, lane, newest)
    JOIN orchestrator_agent AS agent ON agent.id = thread.agent_id AND agent.extracts_facts
), created AS (
    INSERT INTO orchestrator_extractioncursor (agent_id, user_id, thread_id)
    SELECT agent_id, user_id, thread_id FROM wanted ORDER BY agent_id, user_id, thread_id
    ON CONFLICT DO NOTHING
    RETURNING id, agent_id, user_id, thread_id
), cursors AS (
    SELECT id, agent_id, user_id, thread_id FROM created UNION ALL
    SELECT known.id, known.agent_id, known.user_id, known.thread_id
    FROM orchestrator_extractioncursor AS known JOIN wanted USING (user_id, agent_id, thread_id)
)
INSERT INTO tenants_job AS job (tenant_id, kind, key, lane, due_at, sweep_at, traceparent)
SELECT %(tenant_id)s, 'extraction', cursors.id, lane, at, at, %(traceparent)s::text
FROM cursors JOIN wanted USING (user_id, agent_id, thread_id)
CROSS JOIN LATERAL (
    SELECT greatest(least(newest, statement_timestamp()) + idle, statement_timestamp())
) AS due (at)
ORDER BY cursors.id
ON CONFLICT (tenant_id, kind, key) DO UPDATE SET
    traceparent = EXCLUDED.traceparent, attempts = 0, failed_at = NULL,
    due_at = EXCLUDED.due_at, sweep_at = EXCLUDED.sweep_at
WHERE job.failed_at < now() - interval '1 day'
"""


def enqueue(
    tenant_id: UUID, threads: Collection[Thread], newest: Mapping[Thread, datetime] | None = None
) -> None:
    """Enqueue the extraction from conversations whose agents extract facts, unless it is queued.

    One statement. Call it in the transaction that writes the messages, or in a later one.

    Args:
        tenant_id: the current tenant.
        threads: the conversations, each of the agent and the user of its messages.
        newest: times of their newest messages; by default now. A job is due when its conversation
            is idle.
    """
    if not threads:
        return
    execute(
        _ENQUEUE,
        {
            "tenant_id": tenant_id,
            "agents": [thread.agent_id for thread in threads],
            "users": [thread.user_id for thread in threads],
            "threads": [thread.thread_id for thread in threads],
            # The jobs of one person are done one at a time.
            "lanes": [Thread(thread.agent_id, thread.user_id, "").lane for thread in threads],
            "newest": [(newest or {}).get(thread) for thread in threads],
            "traceparent": traceparent(),
        },
    )
