"""A worker's turn with a thread: what waits there is answered, oldest first.

Every step may be killed and run again. What stands already (a reply, its turns in the window) is
found and kept, and the message waits in the outbox until the last step is done. Nothing here holds
a transaction while it waits for somebody else's network.
"""

import time
from uuid import UUID

from celery.exceptions import SoftTimeLimitExceeded

from konstruct.orchestrator.messages import thread_lock
from konstruct.orchestrator.pipeline import write
from konstruct.orchestrator.pipeline.respond import respond
from konstruct.orchestrator.pipeline.snapshot import Snapshot, next_in, oldest_ready, thread_of
from konstruct.orchestrator.replies import queue, reply_wait
from konstruct.orchestrator.tools import tool_calls
from tenants.context import tenant_scope

# Messages of a thread that one task answers before those of other threads have their turn.
THREAD_TURN = 10
# After so long no other message is begun: the task's time limit is for one that takes its time.
THREAD_SECONDS = 30.0


def handle(*, tenant_id: UUID, message_id: UUID) -> None:
    """Answer the message, and what else waits in its thread, oldest first.

    A thread is answered by one worker at a time. Who finds it taken leaves at once: the other looks
    again after it has let go, so that no message falls between the two. What is more than
    THREAD_TURN messages, or than can be answered within THREAD_SECONDS, waits for the next turn, so
    that other threads and tenants come first. A message whose user has not consented to a tool call
    in time is released.

    Raises MessageNotFound.
    """
    answered, until = 0, time.monotonic() + THREAD_SECONDS
    with tenant_scope(tenant_id):
        thread, next_id = thread_of(message_id)
        if next_id is None:
            tool_calls.expire_overdue(message_id)
        # Each iteration answers a message, unless another worker has just taken that message.
        for _ in range(THREAD_TURN + 1):
            if next_id is None:
                return
            if answered == THREAD_TURN or (answered and time.monotonic() > until):
                queue.REPLIES.requeue(next_id)
                return
            with thread_lock(thread) as ours:
                if not ours:
                    return
                # Ends: after THREAD_TURN messages, or THREAD_SECONDS.
                while (snapshot := oldest_ready(thread)) is not None:
                    answer(snapshot)
                    answered += 1
                    if answered == THREAD_TURN or time.monotonic() > until:
                        break
            next_id = next_in(thread)
        if next_id is not None:
            queue.REPLIES.requeue(next_id)


def answer(snapshot: Snapshot) -> None:
    """Take one message all the way, or note in the outbox why not and when to try again.

    The attempt is counted first: a message that kills its worker is given up like any other.
    Raises SoftTimeLimitExceeded, once it is noted, when the task's time is over.
    """
    message, is_to_be_tried_again = snapshot.message, False
    try:
        if queue.REPLIES.begin(message.id):
            said = snapshot.reply or respond(snapshot)
            if said is not None:
                write.write_reply(snapshot, said)
    except Exception as error:  # whatever it is, a human must find it on the row
        is_to_be_tried_again = not write.record_failure(message, error)
        if isinstance(error, SoftTimeLimitExceeded):
            raise
    except BaseException:
        queue.REPLIES.cancel_attempt_if_stopping(message.id)
        raise
    finally:
        # A program that sent the message by REST fetches the reply itself, and waits for it on.
        if not is_to_be_tried_again:
            reply_wait.announce(message.tenant_id, message.id)
