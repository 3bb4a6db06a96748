"""Messages and threads in the pipeline, for all channels, and locks of windows."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from konstruct.orchestrator.exceptions import Busy
from tenants import transaction
from tenants.context import fetch_value
from tenants.jobs import Lease
from tenants.locking import poll

# How long to wait for the lock of a window. Erasures and merges of long conversations hold it for
# seconds.
WINDOW_LOCK_TIMEOUT_SECONDS = 60.0
_TRY_LOCKS: Final = """
SELECT coalesce(bool_and(public.try_tenant_lock(key)), true) FROM unnest(%s::text[]) AS key
"""


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation of an agent with a user.

    `agent_id` is the agent that the messages are sent to, also after a handover.
    """

    agent_id: UUID
    user_id: str
    thread_id: str

    @classmethod
    def of(
        cls, row: "KonstructMessage | Message | Escalation | ExtractionCursor | ExtractionRun"
    ) -> "Thread":
        """Return the thread of a message, an escalation, or an extraction."""
        return cls(row.agent_id, row.user_id, row.thread_id)

    @property
    def lane(self) -> UUID:
        """The lane of the jobs of its replies: one of them runs at a time."""
        name = _join(str(self.agent_id), self.user_id, self.thread_id)
        return UUID(bytes=hashlib.sha256(name.encode()).digest()[:16])

    @property
    def as_filter(self) -> dict[str, UUID | str]:
        """The fields as keyword arguments of QuerySet.filter."""
        return {"agent_id": self.agent_id, "user_id": self.user_id, "thread_id": self.thread_id}


@dataclass(frozen=True, slots=True)
class KonstructMessage:
    """An accepted message of an end user.

    `user_id` and `thread_id` are the channel's ids. `name` is the speaker's display name, as in the
    OpenAI message format, or "".
    """

    id: UUID
    tenant_id: UUID
    agent_id: UUID
    user_id: str
    thread_id: str
    channel: str
    content: str
    name: str = ""
    created_at: datetime | None = None


def konstruct_message(row: "Message") -> KonstructMessage:
    """Return a KonstructMessage from a row of the transcript."""
    return KonstructMessage(*(getattr(row, field.name) for field in fields(KonstructMessage)))


# --- Locks ----------------------------------------------------------------------------------------


@contextmanager
def lock_windows(threads: Iterable[Thread], lease: Lease | None = None) -> Iterator[None]:
    """Run the block in a transaction that locks the windows of the threads' agents and users.

    Threads of one user are answered in parallel and share a window. A transaction that writes a
    turn holds the lock, so that the window has the order of the transcript. If one of the locks is
    taken, it releases the others before it tries again.

    Args:
        threads: the threads. Their agents and users have the windows.
        lease: the lease of the worker that writes in the block; None: no worker.

    Raises:
        Busy: another transaction holds one of the locks for WINDOW_LOCK_TIMEOUT_SECONDS.
        LeaseLost: the lease has ended. The block was not run.
    """
    windows = {_join(str(thread.agent_id), thread.user_id) for thread in threads}
    keys = sorted(f"konstruct.window\x1f{window}" for window in windows)
    with ExitStack() as stack:

        def try_to_lock() -> bool:
            with ExitStack() as attempt:
                attempt.enter_context(transaction.atomic())
                if fetch_value(_TRY_LOCKS, [keys]) if lease is None else lease.check(keys):
                    stack.push(attempt.pop_all())
                    return True
                transaction.set_rollback(True)
            return False

        if not poll(try_to_lock, seconds=WINDOW_LOCK_TIMEOUT_SECONDS):
            raise Busy(f"This conversation is locked for {WINDOW_LOCK_TIMEOUT_SECONDS:g} seconds.")
        yield


def _join(*ids: str) -> str:
    # The lengths make the result unique: an id may contain any character.
    return "\x1f".join(f"{len(part)}:{part}" for part in ids)


if TYPE_CHECKING:
    from konstruct.orchestrator.models import Escalation, ExtractionCursor, ExtractionRun
    from memory.models import Message
