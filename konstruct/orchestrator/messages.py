"""Messages and threads in the pipeline, for all channels: locks of windows, and keys of states."""

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet
from django_redis import get_redis_connection
from redis.exceptions import RedisError

from konstruct.orchestrator.exceptions import Busy
from memory.models import Message, recall
from tenants import jobs, postgres_tools, transaction
from tenants.context import execute, fetch_value, public_scope, tenant_scope
from tenants.models import Tenant

logger = logging.getLogger(__name__)

# How long to wait for the lock of a window. Erasures and merges of long conversations hold it for
# seconds.
WINDOW_LOCK_TIMEOUT_SECONDS = 60.0
_TRY_LOCKS: Final = """
SELECT coalesce(bool_and(public.try_tenant_lock(key)), true) FROM unnest(%s::text[]) AS key
"""


def attachment_note(files: Iterable[str]) -> str:
    """Return a sentence that names the attached files, which the agent cannot read."""
    names = ", ".join(files)
    return f"[Attached, and not to be read here: {names}]" if names else ""


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation of an agent with a user.

    `agent_id` is the agent that the messages are sent to, also after a handover.
    """

    agent_id: UUID
    user_id: str
    thread_id: str

    @classmethod
    def of(cls, row: Any) -> "Thread":
        """Return the thread of a message, an escalation, an extraction, or an erasure."""
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


def konstruct_message(row: Message) -> KonstructMessage:
    """Return a KonstructMessage from a row of the transcript."""
    return KonstructMessage(*(getattr(row, field.name) for field in fields(KonstructMessage)))


# --- Locks ----------------------------------------------------------------------------------------


@contextmanager
def lock_windows(threads: Iterable[Thread], lease: jobs.Lease | None = None) -> Iterator[None]:
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

        if not postgres_tools.poll(try_to_lock, seconds=WINDOW_LOCK_TIMEOUT_SECONDS):
            raise Busy(f"This conversation is locked for {WINDOW_LOCK_TIMEOUT_SECONDS:g} seconds.")
        yield


def _join(*ids: str) -> str:
    # The lengths make the result unique: an id may contain any character.
    return "\x1f".join(f"{len(part)}:{part}" for part in ids)


# --- Keys of open states --------------------------------------------------------------------------

# Escalations, and tool calls that wait. The rows are the source, and the product reads them. Other
# programs read the keys. The key of a thread exists from the commit that opens a state until the
# commit that ends it. It has the rows of the thread as JSON, by the number of their scope
# (memory/models/recall.py), which does not contain the user's id.
STATES: Final[list["ThreadState"]] = []
# Exists while the cache has the keys of all tenants.
WRITTEN_KEY: Final = "public:thread_states"


@dataclass(frozen=True)
class ThreadState:
    """A state of threads. Creating it registers it."""

    key: Callable[[UUID, str], str]
    open_rows: Callable[[], QuerySet[Any]]
    """Returns the open rows of the current tenant, with agent_id, user_id and thread_id."""
    value_of: Callable[[Any], str]
    """Returns the value of a row."""

    def __post_init__(self) -> None:
        STATES.append(self)

    def write_on_commit(self, tenant_id: UUID, thread_id: str) -> None:
        """Write the key of a thread when the current transaction is committed."""
        transaction.on_commit(partial(self.write, tenant_id, thread_id))

    def write(self, tenant_id: UUID, thread_id: str) -> None:
        """Write the key of a thread from its rows, or delete it if no state is open."""
        key = self.key(tenant_id, thread_id)
        try:
            with tenant_scope(tenant_id), transaction.atomic():
                # The last writer of the key is the one that has read the rows last.
                execute("SELECT public.wait_for_tenant_lock(%s)", [f"konstruct.state {key}"])
                values: dict[str, str] = {}
                for row in self.open_rows().filter(thread_id=thread_id):
                    scope = str(recall.scope_number(row.agent_id, row.user_id))
                    values[scope] = f"{values.get(scope, '')} {self.value_of(row)}".strip()
                client = get_redis_connection("default")
                if values:
                    client.set(key, json.dumps(values))
                else:
                    client.delete(key)
        except RedisError as error:
            logger.warning("a state of a thread is not written: %s", error)


def write_all_states(tenant_id: UUID) -> None:
    """Write the keys of all open states of a tenant."""
    for state in STATES:
        with tenant_scope(tenant_id):
            threads = state.open_rows().order_by().values_list("thread_id", flat=True)
            thread_ids = list(threads.distinct())
        for thread_id in thread_ids:
            state.write(tenant_id, thread_id)


def write_states_after_flush() -> bool:
    """Write the keys of all tenants, if the cache has lost them; return whether it had."""
    client = get_redis_connection("default")
    if client.exists(WRITTEN_KEY):
        return False
    with public_scope():
        tenants = list(Tenant.objects.serving().values_list("pk", flat=True))
    for tenant_id in tenants:
        write_all_states(tenant_id)
    client.set(WRITTEN_KEY, 1)
    return True
