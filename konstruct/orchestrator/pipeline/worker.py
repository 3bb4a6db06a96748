"""A worker's turn with a thread: what waits there is answered, oldest first.

Every step may be killed and run again. A step finds what an earlier run has written (a reply, its
turns in the window), and the message waits in its queue until the last step is done. While a
language model is asked, the worker holds a lease, and neither a transaction nor a connection.
"""

import time
from functools import partial
from typing import Final
from uuid import UUID

from django.utils import timezone

from konstruct.orchestrator.pipeline import write
from konstruct.orchestrator.pipeline.respond import respond
from konstruct.orchestrator.pipeline.snapshot import Snapshot, oldest_ready, thread_of
from konstruct.orchestrator.replies import queue, reply_wait
from konstruct.orchestrator.tools import tool_calls
from tenants.context import tenant_scope
from tenants.jobs import Lease, Outcome
from tenants.metrics import histogram

# Messages of a thread that one task answers before those of other threads have their turn.
THREAD_TURN = 10
# After so long no other message is begun.
THREAD_SECONDS = 30.0
REPLY_SECONDS: Final = histogram(
    "konstruct_reply_seconds",
    "From the acceptance of a message to its reply, with the time that it waited.",
)


def handle(*, tenant_id: UUID, message_id: UUID) -> None:
    """Answer the message, and what else waits in its thread, oldest first.

    One message of a thread is leased at a time. A worker that finds one leased returns at once: the
    worker that has the lease looks for further messages after it. What is more than THREAD_TURN
    messages, or than can be answered within THREAD_SECONDS, waits for the next turn, so that other
    threads and tenants come first. A message whose user has not consented to a tool call in time is
    released.

    Args:
        tenant_id: the tenant.
        message_id: a message of a user.

    Raises:
        MessageNotFound: the tenant has no such message.
    """
    answered, until = 0, time.monotonic() + THREAD_SECONDS
    with tenant_scope(tenant_id):
        thread, next_id = thread_of(message_id)
        if next_id is None:
            tool_calls.expire_overdue(message_id)
        # Ends: after THREAD_TURN messages or THREAD_SECONDS, or where another worker has a lease.
        while next_id is not None and (snapshot := oldest_ready(thread)) is not None:
            if answered == THREAD_TURN or (answered and time.monotonic() > until):
                queue.REPLIES.requeue(snapshot.message.id)
                return
            if not answer(snapshot):
                return
            answered += 1


def answer(snapshot: Snapshot) -> bool:
    """Answer one message, or record why not and when to try again.

    The attempt is counted first: a message that kills its worker is given up like any other.

    Returns:
        False if the thread is another worker's: nothing more is to be done in it.
    """
    message = snapshot.message

    def reply(lease: Lease) -> None:
        written = snapshot.reply or respond(snapshot, lease)
        if written is not None:
            write.write_reply(snapshot, written, lease)
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
    # A program that sent the message by REST fetches the reply itself, and waits for it.
    if outcome is not Outcome.FAILED:
        reply_wait.announce(message.tenant_id, message.id)
    return True
