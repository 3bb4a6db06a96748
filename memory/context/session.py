"""Sessions: the conversations of LangGraph graphs, kept until they are cleared."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from psycopg.errors import UndefinedTable

from memory import arguments, exceptions
from memory.context.chat import as_turn
from tenants import context, naming
from tenants.audit.tombstones import SESSION, enqueue_tombstones
from tenants.exceptions import TenantPinned, UnknownTenant

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from memory.context.checkpoints import TenantPostgresSaver


@dataclass(frozen=True, slots=True)
class Session:
    """A thread with a history: the time of its newest checkpoint, and the number of checkpoints."""

    thread_id: str
    updated_at: datetime
    checkpoints: int
    checkpoint_id: str
    """Id of the newest checkpoint. Ids increase with time."""


class SessionStore:
    """A tenant's LangGraph threads. They never expire; only `clear_session` removes one.

    A tenant that does not exist has none.

    Args:
        tenant_id: owner of the sessions. By default the caller's current tenant (of a request, a
            task, `tenant_scope`).
        messages_key: the key of the messages in the graph's state.
        serde: LangGraph's serializer for checkpoints; by default LangGraph's default. It is made
            strict: it builds only the classes of docs/context.md and those that it allows.
        database_url: the database of this process, or None. It may also be passed in place of
            `tenant_id`.

    Raises:
        InvalidArgument: another database is named. Settings choose it.
    """

    def __init__(
        self,
        tenant_id: UUID | str | None = None,
        *,
        messages_key: str = "messages",
        serde: "SerializerProtocol | None" = None,
        database_url: str | None = None,
    ) -> None:
        if isinstance(tenant_id, str) and "://" in tenant_id:
            tenant_id, database_url = None, tenant_id
        arguments.require_configured_database(database_url)
        self._tenant_id = None if tenant_id is None else naming.as_tenant_id(tenant_id)
        self.messages_key = messages_key
        self._serde = serde

    @property
    def tenant_id(self) -> UUID:
        """The tenant that owns the sessions.

        Raises:
            NoTenant: the store has no tenant, and neither has the caller.
            TenantPinned: the caller serves another tenant.
        """
        tenant_id = self._tenant_id or context.current_tenant_id()
        if tenant_id is None:
            raise exceptions.NoTenant("sessions belong to a tenant: use SessionStore(tenant_id)")
        pinned = context.pinned_tenant_id()
        if pinned not in (None, tenant_id):
            raise TenantPinned(f"this code serves tenant {pinned} and cannot enter {tenant_id}")
        return tenant_id

    @property
    def checkpointer(self) -> "TenantPostgresSaver":
        """For `graph.compile(checkpointer=...)`: it keeps the tenant of the current scope.

        It works for `invoke` and `ainvoke`, from any thread.
        """
        # Imported here: LangGraph takes half a second and 40 MB of each process.
        from memory.context.checkpoints import TenantPostgresSaver

        return TenantPostgresSaver(self.tenant_id, serde=self._serde)

    def setup(self) -> None:
        """Check or update LangGraph's tables: see `TenantPostgresSaver.setup`."""
        self.checkpointer.setup()

    def get_session_messages(
        self, thread_id: str, limit: int = 50, *, max_bytes: int | None = None
    ) -> list[dict[str, Any]]:
        """Return the newest `limit` messages of a thread, oldest first; [] for an unknown thread.

        Each is {"role", "content", …}; the role is user, assistant, system or tool.

        Args:
            limit: the maximum number.
            max_bytes: the maximum size of a thread's messages; None: no maximum.

        Raises:
            UnreadableSession: the state's messages are no list (a DeltaChannel stores changes,
                which only its graph can apply), or exceed `max_bytes`.
            CheckpointRefused: they have an object of a class that is not allowed.
        """
        arguments.count_argument("limit", limit)
        arguments.id_argument("thread_id", thread_id)
        messages = None
        with suppress(UndefinedTable):
            messages = self.checkpointer.newest_value(thread_id, self.messages_key, max_bytes)
        if messages is None:
            return []
        if type(messages) is not list:
            raise exceptions.UnreadableSession(
                f"thread {thread_id!r} keeps a {type(messages).__name__} under"
                f" {self.messages_key!r}, not a list of messages"
            )
        return [as_turn(message) for message in messages[-limit:]]

    def list_sessions(
        self, limit: int = 50, *, before: Session | None = None, after: Session | None = None
    ) -> list[Session]:
        """Return the tenant's threads, last used first.

        Args:
            limit: the maximum number.
            before: only threads that were used before this one.
            after: only threads that were used after this one, the next one first.
        """
        arguments.count_argument("limit", limit)
        cursor, sign, order = before or after, "<" if before else ">", "ASC" if after else "DESC"
        condition = f"AND (newest, thread_id) {sign} (%(newest)s, %(thread)s)" if cursor else ""
        values: dict[str, Any] = {"limit": limit}
        if cursor:
            values |= {"newest": cursor.checkpoint_id, "thread": cursor.thread_id}
        return self._sessions(values, page_condition=condition, order=order)

    def get_session(self, thread_id: str) -> Session | None:
        """Return a thread's last use and number of checkpoints; None for an unknown thread."""
        values = {"only": arguments.id_argument("thread_id", thread_id), "limit": 1}
        sessions = self._sessions(values, thread_condition="AND thread_id = %(only)s")
        return sessions[0] if sessions else None

    def _sessions(
        self,
        values: dict[str, Any],
        *,
        thread_condition: str = "",
        page_condition: str = "",
        order: str = "DESC",
    ) -> list[Session]:
        with suppress(UnknownTenant), context.known_tenant(self.tenant_id):
            # Checkpoint ids increase with time, so the newest id has the newest time. Two probes of
            # the primary key for each thread; only the checkpoints of the page are read.
            rows = context.fetch_all(
                f"""
                WITH RECURSIVE thread (thread_id) AS (
                    SELECT min(thread_id) FROM checkpoints WHERE true {thread_condition}
                    UNION ALL
                    SELECT (
                        SELECT min(thread_id) FROM checkpoints
                        WHERE thread_id > thread.thread_id {thread_condition}
                    ) FROM thread WHERE thread.thread_id IS NOT NULL
                ), newest_of_each AS (
                    SELECT thread_id, (
                        SELECT max(checkpoint_id) FROM checkpoints c
                        WHERE c.thread_id = thread.thread_id AND checkpoint_ns = ''
                    ) AS newest
                    FROM thread WHERE thread_id IS NOT NULL
                ), page AS (
                    SELECT * FROM newest_of_each WHERE newest IS NOT NULL {page_condition}
                    ORDER BY newest {order}, thread_id {order} LIMIT %(limit)s
                )
                SELECT page.thread_id, (checkpoint ->> 'ts')::timestamptz AS updated_at, (
                    SELECT count(*) FROM checkpoints counted
                    WHERE counted.thread_id = page.thread_id AND checkpoint_ns = ''
                ) AS checkpoints, newest
                FROM page JOIN checkpoints c
                ON c.thread_id = page.thread_id AND checkpoint_ns = '' AND checkpoint_id = newest
                ORDER BY newest {order}, page.thread_id {order}
                """,  # noqa: S608  (our constants)
                values,
            )
            return [Session(*row) for row in rows]
        return []

    def clear_session(self, thread_id: str) -> None:
        """Remove a thread with its history."""
        arguments.id_argument("thread_id", thread_id)
        with context.tenant_scope(self.tenant_id):
            enqueue_tombstones(SESSION, thread_id)
        with suppress(UndefinedTable):
            self.checkpointer.delete_thread(thread_id)

    asetup = context.asynchronous(setup)
    aget_session_messages = context.asynchronous(get_session_messages)
    alist_sessions = context.asynchronous(list_sessions)
    aget_session = context.asynchronous(get_session)
    aclear_session = context.asynchronous(clear_session)
