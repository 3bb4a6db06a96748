"""LangGraph's Postgres saver inside one tenant."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial, wraps
from typing import Any
from uuid import UUID

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg import Cursor, IsolationLevel
from psycopg.rows import DictRow

from memory.context.checkpoints.connections import (
    TenantConnection,
    refuse_full_storage,
    tenant_session,
    tenant_transaction,
)
from memory.context.checkpoints.serializer import check_json, strict_serializer
from memory.context.exceptions import SessionTablesOutdated
from memory.ids import new_id_argument
from tenants import transaction
from tenants.audit.people import hold_people
from tenants.context import tenant_scope
from tenants.locking import schema_lock
from tenants.naming import as_tenant_id, schema_name_of

_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
_NEWEST_VALUE_SQL = """
    SELECT checkpoint -> 'channel_values' -> %(channel)s::text AS inline, value.type, value.blob
    FROM checkpoints AS newest LEFT JOIN checkpoint_blobs AS value
        ON value.thread_id = newest.thread_id AND value.checkpoint_ns = newest.checkpoint_ns
        AND value.channel = %(channel)s
        AND value.version = checkpoint -> 'channel_versions' ->> %(channel)s::text
    WHERE newest.thread_id = %(thread)s AND newest.checkpoint_ns = ''
    ORDER BY checkpoint_id DESC LIMIT 1
"""
# The size of the value of _NEWEST_VALUE_SQL, which Postgres knows without reading the value.
_NEWEST_SIZE_SQL = _NEWEST_VALUE_SQL.replace(
    "checkpoint -> 'channel_values' -> %(channel)s::text AS inline, value.type, value.blob",
    "coalesce(octet_length(value.blob),"
    " octet_length((checkpoint -> 'channel_values' -> %(channel)s::text)::text), 0) AS bytes",
)


def _in_thread(method: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return a coroutine function that runs the method in a thread."""

    @wraps(method)
    async def run_in_thread(*args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(method, *args, **kwargs)

    return run_in_thread


class TenantPostgresSaver(PostgresSaver):
    """`PostgresSaver` for `graph.compile(checkpointer=...)`: every statement runs in one tenant.

    It may be used from any thread and any event loop: each operation takes a connection of the
    process' pool, and the asynchronous methods run the synchronous ones in a thread. It reads only
    data: an object of a class that is not allowed is refused, also when it is written.
    """

    def __init__(self, tenant_id: UUID | str, *, serde: SerializerProtocol | None = None) -> None:
        # The base class would keep a connection; here `_cursor` takes one for each operation.
        super().__init__(None, serde=strict_serializer(serde))  # type: ignore[arg-type]
        self.tenant_id = as_tenant_id(tenant_id)
        self._connect: Callable[[UUID], AbstractContextManager[TenantConnection]] = (
            tenant_transaction
        )

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Cursor[DictRow]]:
        """Open a cursor inside the tenant; all of its statements are one transaction."""
        with self._connect(self.tenant_id) as connection:
            in_pipeline = connection.pipeline() if pipeline else nullcontext()
            with in_pipeline, connection.cursor(binary=True) as cursor:
                yield cursor

    # --- Tables -----------------------------------------------------------------------------

    def setup(self) -> None:
        """Check that the tenant has LangGraph's tables in the installed version.

        `manage.py migrate` creates them with the tenant. If a newer LangGraph needs more than these
        migrations, the owner's role updates the tables here, one process at a time.

        Raises:
            SessionTablesOutdated: they are missing or too old, and this role may not change them.
        """
        with self._cursor() as cursor:
            cursor.execute(
                "SELECT to_regclass('checkpoint_migrations') IS NOT NULL AS made,"
                " has_schema_privilege(current_schema(), 'CREATE') AS owner"
            )
            found = cursor.fetchone() or {}
            version = -1
            if found["made"]:
                cursor.execute("SELECT coalesce(max(v), -1) AS version FROM checkpoint_migrations")
                version = (cursor.fetchone() or {"version": -1})["version"]
        wanted = len(self.MIGRATIONS) - 1
        if version >= wanted:
            return
        if not (found["made"] and found["owner"]):
            raise SessionTablesOutdated(
                f"tenant {self.tenant_id} has LangGraph's tables in version {version} and"
                f" needs {wanted}: run `manage.py migrate`"
            )
        # Indexes are built and dropped concurrently, which is impossible in a transaction.
        with (
            schema_lock(schema_name_of(self.tenant_id)),
            self._with_connections(tenant_session) as saver,
        ):
            saver._drop_unfinished_indexes()
            super(TenantPostgresSaver, saver).setup()

    @contextmanager
    def _with_connections(
        self, connect: Callable[[UUID], AbstractContextManager[TenantConnection]]
    ) -> Iterator["TenantPostgresSaver"]:
        """Return a copy of this saver with connections from `connect`."""
        saver = type(self)(self.tenant_id, serde=self.serde)
        saver._connect = connect
        yield saver

    def _drop_unfinished_indexes(self) -> None:
        """Drop indexes of interrupted builds, which LangGraph's IF NOT EXISTS would accept."""
        with self._cursor() as cursor:
            cursor.execute(
                "SELECT indexrelid::regclass::text AS name FROM pg_index"
                " WHERE NOT indisvalid AND indrelid = ANY (%s::regclass[])",
                [list(_TABLES)],
            )
            for row in cursor.fetchall():
                cursor.execute(f"DROP INDEX CONCURRENTLY {row['name']}")

    # --- Writing ----------------------------------------------------------------------------

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """As in the base class.

        Raises:
            InvalidArgument: the thread id is no id of new rows.
            CheckpointRefused: the metadata, or a value that is stored as JSON, cannot be stored.
            PersonBeingErased: an erasure of the user in the metadata is requested, and not done.
            QuotaExceeded: the tenant's storage is full.
        """
        self._check(config)
        check_json("metadata", metadata)
        for channel, value in checkpoint["channel_values"].items():
            if isinstance(value, str | float | int):
                check_json(f"the channel {channel!r}", value)
        if not isinstance(user_id := metadata.get("user_id"), str):
            return super().put(config, checkpoint, metadata, new_versions)
        # LangGraph's transaction has another connection, and ends within this one.
        with tenant_scope(self.tenant_id), transaction.atomic():
            hold_people([user_id])
            return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, *args: Any, **kwargs: Any) -> None:
        """As in the base class. Raises InvalidArgument and QuotaExceeded as `put`."""
        self._check(config)
        super().put_writes(config, *args, **kwargs)

    def _check(self, config: Any) -> None:
        new_id_argument("thread_id", str(config["configurable"]["thread_id"]))
        refuse_full_storage(self.tenant_id)

    # --- Methods that the base class lacks -----------------------------------------------------

    def newest_value(self, thread_id: str, channel: str) -> Any:
        """Return one channel's value in the thread's newest state; None if there is none.

        Other channels are not read: they may hold values that only their graph can read.

        Raises:
            CheckpointRefused: the value has an object of a class that is not allowed.
        """
        with self._cursor() as cursor:
            cursor.execute(_NEWEST_VALUE_SQL, {"thread": str(thread_id), "channel": channel})
            found = cursor.fetchone()
        if found is None:
            return None
        if found["type"] in (None, "empty"):
            return found["inline"]
        return self.serde.loads_typed((found["type"], found["blob"]))

    def newest_size(self, thread_id: str, channel: str) -> int:
        """Return the size in bytes of the value that `newest_value` reads; 0 if there is none."""
        with self._cursor() as cursor:
            cursor.execute(_NEWEST_SIZE_SQL, {"thread": str(thread_id), "channel": channel})
            found = cursor.fetchone()
        return 0 if found is None else int(found["bytes"])

    def list(self, *args: Any, **kwargs: Any) -> Iterator[CheckpointTuple]:
        """As in the base class, but the connection is returned before the first result."""
        yield from [*super().list(*args, **kwargs)]

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As in the base class, in transactions of the isolation level that it sets.

        Postgres refuses to change the level inside the transactions that `_cursor` opens.
        """
        with self._with_connections(
            partial(tenant_transaction, level=IsolationLevel.REPEATABLE_READ)
        ) as saver:
            super(TenantPostgresSaver, saver).prune(thread_ids, strategy=strategy)

    # --- Asynchronous methods -----------------------------------------------------------------

    aget_tuple = _in_thread(PostgresSaver.get_tuple)
    aput = _in_thread(put)
    aput_writes = _in_thread(put_writes)
    adelete_thread = _in_thread(PostgresSaver.delete_thread)
    aprune = _in_thread(prune)
    aget_delta_channel_history = _in_thread(PostgresSaver.get_delta_channel_history)

    async def alist(self, *args: Any, **kwargs: Any) -> AsyncIterator[CheckpointTuple]:
        for checkpoint in await asyncio.to_thread(lambda: [*self.list(*args, **kwargs)]):
            yield checkpoint
