"""Answers the due messages of a thread, oldest first.

Every step may be killed and run again. A step finds the rows of an earlier attempt (a reply, its
turns in the window), and the message stays queued until the last step is done. While it waits for a
language model, the worker holds a lease, and neither a transaction nor a connection.
"""

import time
from functools import partial
from typing import Final
from uuid import UUID

from django.utils import timezone

from konstruct.orchestrator.pipeline import write
from konstruct.orchestrator.pipeline.respond import respond
from konstruct.orchestrator.pipeline.snapshot import Snapshot, oldest_due, thread_of
from konstruct.orchestrator.replies import queue, reply_wait
from konstruct.orchestrator.tools import tool_calls
from tenants.context import tenant_scope
from tenants.jobs import Lease, Outcome
from tenants.metrics import histogram

# The maximum number of messages of a thread that one task answers.
MAX_THREAD_MESSAGES = 10
# After this time a task begins no further message.
MAX_THREAD_SECONDS = 30.0
REPLY_SECONDS: Final = histogram(
    "konstruct_reply_seconds",
    "From the acceptance of a message to its reply, with the time that it waited.",
)


def handle(*, tenant_id: UUID, message_id: UUID) -> None:
    """Answer the message, and the other due messages of its thread, oldest first.

    One message of a thread is leased at a time. If another worker has a lease, this worker returns:
    the other one checks for further messages after its lease. After MAX_THREAD_MESSAGES, or after
    MAX_THREAD_SECONDS, the next message is enqueued again, so that other threads and tenants come
    first. If the message itself is held and its tool calls are overdue, it is released.

    Args:
        tenant_id: the tenant.
        message_id: a message of a user.

    Raises:
        MessageNotFound: the tenant has no such message.
    """
    answered, deadline = 0, time.monotonic() + MAX_THREAD_SECONDS
    with tenant_scope(tenant_id):
        thread, next_id = thread_of(message_id)
        if next_id is None:
            tool_calls.expire_overdue(message_id)
        # Ends: after MAX_THREAD_MESSAGES or MAX_THREAD_SECONDS, or if another worker has a lease.
        while next_id is not None and (snapshot := oldest_due(thread)) is not None:
            if answered == MAX_THREAD_MESSAGES or (answered and time.monotonic() > deadline):
                queue.REPLIES.requeue(snapshot.message.id)
                return
            if not answer(snapshot):
                return
            answered += 1


def answer(snapshot: Snapshot) -> bool:
    """Answer one message, or record the failure and the time of the next attempt.

    The attempt is counted first: a message that kills its worker fails like any other.

    Returns:
        False if another worker has the thread.
    """
    message = snapshot.message

    def reply(lease: Lease) -> None:
        draft = snapshot.reply or respond(snapshot, lease)
        if draft is not None:
            write.write_reply(snapshot, draft, lease)
            if message.created_at is not None:
                waited = timezone.now() - message.created_at
                REPLY_SECONDS.of().observe(waited.total_seconds())

    outcome = queue.REPLIES.run(
        message.id,
        reply,
        lane=snapshot.thread.lane,
        on_failure=partial(write.record_failure, message),
    )
    if outcome is None:
        return False
    # A program that sent the message by REST waits for the reply itself.
    if outcome is not Outcome.FAILED:
        reply_wait.announce(message.tenant_id, message.id)
    return True
