"""The queue of embeddings: each new message has a job until its vectors and words are written."""

import sys
from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from tenants.context import execute
from tenants.jobs import JobKind
from tenants.traces import traceparent

# An embedding is retried until it succeeds: otherwise recall would never find the message.
EMBEDDINGS = JobKind(
    "embedding",
    do="memory.indexing.embedding_jobs.embed_claimed",
    queue="embeddings",
    max_attempts=sys.maxsize,
    first_backoff=10.0,
    max_backoff=3600.0,
)

_ENQUEUE = """
WITH queued AS (
    INSERT INTO tenants_job (kind, key, due_at, sweep_at, traceparent)
    SELECT 'embedding', id, statement_timestamp() + %(delay)s, statement_timestamp() + %(delay)s,
           %(traceparent)s::text
    FROM unnest(%(ids)s::uuid[]) AS id
    ON CONFLICT DO NOTHING
)
INSERT INTO memory_pendingembedding (message_id)
SELECT id FROM unnest(%(ids)s::uuid[]) AS id
ON CONFLICT DO NOTHING
"""


def enqueue(
    message_ids: Collection[UUID],
    *,
    delay: timedelta = timedelta(0),
) -> None:
    """Enqueue the embeddings of messages of the current tenant that are not queued yet.

    Call it in the transaction that writes the messages. It wakes no worker.

    Args:
        message_ids: of the messages.
        delay: time until the sweep wakes a worker. The caller sends its own task before that.
    """
    if message_ids:
        values = {"ids": list(message_ids), "delay": delay, "traceparent": traceparent()}
        execute(_ENQUEUE, values)
