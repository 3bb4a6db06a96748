"""LangGraph's Postgres saver inside one tenant, with every capability that LangGraph knows."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.base import PRUNE_DELTA_THREADS_SQL
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import TASKS
from psycopg import Cursor, IsolationLevel
from psycopg.rows import DictRow

from memory.context.checkpoints.connections import (
    TenantConnection,
    connection_in,
    session_in,
)
from memory.context.checkpoints.serializer import strict
from memory.context.exceptions import SessionTablesOutdated, ThreadExists
from memory.exceptions import InvalidArgument
from tenants.locking.schema_locks import schema_lock
from tenants.naming import as_tenant_id, schema_name_of

P = ParamSpec("P")
R = TypeVar("R")
_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
_COPY_SQL = (
    """
    INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type,
                             checkpoint, metadata)
    SELECT %(target)s, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type,
           checkpoint, metadata
    FROM checkpoints WHERE thread_id = %(source)s
    """,
    """
    INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
    SELECT %(target)s, checkpoint_ns, channel, version, type, blob
    FROM checkpoint_blobs WHERE thread_id = %(source)s
    """,
    """
    INSERT INTO checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path,
                                   idx, channel, type, blob)
    SELECT %(target)s, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob
    FROM checkpoint_writes WHERE thread_id = %(source)s
    """,
)
# Rows are few and narrow here: what a checkpoint holds stays in Postgres.
_ROWS_SQL = f"""
    SELECT checkpoint_ns, checkpoint_id, metadata -> 'parents' ->> '' AS root_id,
           CASE WHEN (checkpoint ->> 'v')::int < 4 AND EXISTS (
               SELECT 1 FROM checkpoint_writes w
               WHERE w.thread_id = c.thread_id AND w.checkpoint_ns = c.checkpoint_ns
               AND w.checkpoint_id = c.parent_checkpoint_id AND w.channel = '{TASKS}'
           ) THEN parent_checkpoint_id END AS sends_parent_id
    FROM checkpoints c WHERE thread_id = %s
"""  # noqa: S608  (a constant of LangGraph's)
_NEWEST_VALUE_SQL = """
    SELECT checkpoint -> 'channel_values' -> %(channel)s::text AS inline, value.type, value.blob
    FROM checkpoints AS newest LEFT JOIN checkpoint_blobs AS value
        ON value.thread_id = newest.thread_id AND value.checkpoint_ns = newest.checkpoint_ns
        AND value.channel = %(channel)s
        AND value.version = checkpoint -> 'channel_versions' ->> %(channel)s::text
    WHERE newest.thread_id = %(thread)s AND newest.checkpoint_ns = ''
    ORDER BY checkpoint_id DESC LIMIT 1
"""
_DELETE_CHECKPOINTS_SQL = """
    DELETE FROM checkpoints
    WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = ANY(%s)
    RETURNING checkpoint -> 'channel_versions' AS versions
"""
_DELETE_WRITES_SQL = """
    DELETE FROM checkpoint_writes
    WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = ANY(%s)
"""
_ORPHAN_CHILDREN_SQL = """
    UPDATE checkpoints SET parent_checkpoint_id = NULL
    WHERE thread_id = %s AND checkpoint_ns = %s AND parent_checkpoint_id = ANY(%s)
"""
_VERSIONS_IN_USE_SQL = """
    SELECT DISTINCT used.key AS channel, used.value AS version
    FROM checkpoints, jsonb_each_text(checkpoint -> 'channel_versions') AS used
    WHERE thread_id = %s AND checkpoint_ns = %s
"""
_DELETE_BLOBS_SQL = """
    DELETE FROM checkpoint_blobs
    WHERE thread_id = %s AND checkpoint_ns = %s AND channel = %s AND version = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """What the choice needs to know of a checkpoint."""

    namespace: str
    checkpoint_id: str
    # The checkpoint of the root graph that the run of this (sub)graph started from.
    root_id: str | None = None
    # The parent whose pending sends this one is read with: only in LangGraph's formats before 4.
    sends_parent_id: str | None = None


def superfluous(rows: Iterable[CheckpointRow], keep: int) -> dict[str, set[str]]:
    """The checkpoint ids of each namespace that go when its newest `keep` stay.

    A subgraph's namespace (with a task id after a colon) exists for one step of the root graph: it
    goes with the root's checkpoint that it started from, but not while that one is still to be
    saved, for a run saves in the background and the subgraph's may come first.
    """
    namespaces: dict[str, list[CheckpointRow]] = defaultdict(list)
    for row in rows:
        namespaces[row.namespace].append(row)
    roots = {row.checkpoint_id for row in namespaces.get("", [])}
    kept_roots = _newest(namespaces.get("", []), keep)
    going: dict[str, set[str]] = {}
    for namespace, members in namespaces.items():
        latest = max(members, key=lambda row: row.checkpoint_id)
        if ":" in namespace and latest.root_id in roots - kept_roots:
            kept = set()
        else:
            kept = _newest(members, keep)
        if gone := {row.checkpoint_id for row in members} - kept:
            going[namespace] = gone
    return going


def _newest(rows: list[CheckpointRow], keep: int) -> set[str]:
    """The newest ids (they grow with time), and the parents that those cannot be read without."""
    newest = sorted(rows, key=lambda row: row.checkpoint_id, reverse=True)[:keep]
    ids = {row.checkpoint_id for row in newest}
    return ids | {row.sends_parent_id for row in newest if row.sends_parent_id}


class TenantPostgresSaver(PostgresSaver):
    """`PostgresSaver` for `graph.compile(checkpointer=...)`: every statement runs in one tenant.

    It may be used from any thread and any event loop: connections come from the process' pool, one
    for each operation, and the asynchronous methods run the synchronous ones in a thread. What it
    reads is data: an object of a class that is not allowed is refused, when it is written too.
    """

    def __init__(self, tenant_id: UUID | str, *, serde: SerializerProtocol | None = None) -> None:
        # The base class would keep a connection; ours are lent by `_cursor`, through which all
        # its statements go.
        super().__init__(None, serde=strict(serde))  # type: ignore[arg-type]
        self.tenant_id = as_tenant_id(tenant_id)
        self._lend: Callable[[UUID], AbstractContextManager[TenantConnection]] = connection_in

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Cursor[DictRow]]:
        """A cursor inside the tenant; with `pipeline`, its statements are one transaction."""
        with self._lend(self.tenant_id) as connection:
            if not pipeline:
                with connection.cursor(binary=True) as cursor:
                    yield cursor
            elif self.supports_pipeline:
                with connection.pipeline(), connection.cursor(binary=True) as cursor:
                    yield cursor
            else:
                with connection.transaction(), connection.cursor(binary=True) as cursor:
                    yield cursor

    @contextmanager
    def _snapshot(self) -> Iterator[Cursor[DictRow]]:
        """A transaction that reads the state of its beginning, whatever runs save meanwhile."""
        with (
            connection_in(self.tenant_id, level=IsolationLevel.REPEATABLE_READ) as connection,
            connection.cursor(binary=True) as cursor,
        ):
            yield cursor

    # --- Tables -----------------------------------------------------------------------------

    def setup(self) -> None:
        """Check that the tenant has LangGraph's tables in the version that is installed.

        `manage.py migrate` makes them with the tenant. Where a newer LangGraph wants more than
        our migrations know, the owner's role brings them up to date here, one process at a time.

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
        with schema_lock(schema_name_of(self.tenant_id)):
            # Indexes are built and dropped concurrently, which no transaction can.
            self._lend = session_in
            try:
                self._drop_unfinished_indexes()
                super().setup()
            finally:
                self._lend = connection_in

    def _drop_unfinished_indexes(self) -> None:
        """Drop what a cut-off build left: LangGraph's IF NOT EXISTS would take it for an index."""
        with self._cursor() as cursor:
            cursor.execute(
                "SELECT indexrelid::regclass::text AS name FROM pg_index"
                " WHERE NOT indisvalid AND indrelid = ANY (%s::regclass[])",
                [list(_TABLES)],
            )
            for row in cursor.fetchall():
                cursor.execute(f"DROP INDEX CONCURRENTLY {row['name']}")

    # --- What the base class leaves out -----------------------------------------------------

    def newest_value(self, thread_id: str, channel: str) -> Any:
        """One channel's value in the thread's newest state, None where there is none.

        The other channels are left alone: they may hold what only their graph can read.

        Raises:
            CheckpointRefused: the value is more than data of allowed classes.
        """
        with self._cursor() as cursor:
            cursor.execute(_NEWEST_VALUE_SQL, {"thread": str(thread_id), "channel": channel})
            found = cursor.fetchone()
        if found is None:
            return None
        if found["type"] in (None, "empty"):
            return found["inline"]
        return self.serde.loads_typed((found["type"], found["blob"]))

    def list(self, *args: Any, **kwargs: Any) -> Iterator[CheckpointTuple]:
        """As in the base class, but the connection is given back before the first result."""
        yield from [*super().list(*args, **kwargs)]

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that these runs saved, their writes, and blobs nobody else needs.

        A checkpoint that followed a deleted one is left without a parent. Not for a thread that
        has a run in progress: it could be building on what is deleted.

        Raises:
            NotImplementedError: a thread uses a DeltaChannel, whose value is rebuilt from older
                checkpoints; nothing is deleted then.
        """
        wanted = _texts("run_ids", run_ids)
        with self._snapshot() as cursor:
            cursor.execute(
                "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints"
                " WHERE run_id = ANY(%s)",
                (wanted,),
            )
            going: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
            for row in cursor.fetchall():
                going[row["thread_id"]][row["checkpoint_ns"]].add(row["checkpoint_id"])
            _refuse_delta_channels(cursor, list(going))
            for thread_id, namespaces in going.items():
                _delete_checkpoints(cursor, thread_id, namespaces)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with its whole history to a thread that has none; a missing one is empty.

        Raises:
            ThreadExists: the target has checkpoints. Two histories cannot be told apart in one.
        """
        names = {"source": str(source_thread_id), "target": str(target_thread_id)}
        with self._snapshot() as cursor:
            cursor.execute("SELECT 1 FROM checkpoints WHERE thread_id = %(target)s LIMIT 1", names)
            if cursor.fetchone():
                raise ThreadExists(
                    f"thread {target_thread_id!r} has a history already; clear it, or copy"
                    f" {source_thread_id!r} to another thread"
                )
            for statement in _COPY_SQL:
                cursor.execute(statement, names)

    def prune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest", keep: int = 1
    ) -> None:
        """Delete all but the newest `keep` checkpoints of each namespace of these threads.

        What the kept ones refer to stays: their pending writes and their values. A run that goes
        on meanwhile is safe, a replay from a deleted checkpoint is not. With the strategy
        "delete" nothing is kept. Each thread is pruned in a transaction of its own.

        Raises:
            InvalidArgument: `strategy` is neither, or `keep` is below 1.
            NotImplementedError: a thread uses a DeltaChannel, whose value is rebuilt from older
                checkpoints; nothing is deleted then.
        """
        threads = _texts("thread_ids", thread_ids)
        if strategy == "delete":
            for thread_id in threads:
                self.delete_thread(thread_id)
            return
        if strategy != "keep_latest":
            raise InvalidArgument(f"strategy={strategy!r} is neither 'keep_latest' nor 'delete'")
        if keep < 1:
            raise InvalidArgument(f"keep={keep!r} is not at least 1; use strategy='delete'")
        with self._cursor() as cursor:
            _refuse_delta_channels(cursor, threads)
        for thread_id in threads:
            with self._snapshot() as cursor:
                cursor.execute(_ROWS_SQL, (thread_id,))
                rows = [
                    CheckpointRow(
                        namespace=row["checkpoint_ns"],
                        checkpoint_id=row["checkpoint_id"],
                        root_id=row["root_id"],
                        sends_parent_id=row["sends_parent_id"],
                    )
                    for row in cursor.fetchall()
                ]
                _refuse_delta_channels(cursor, [thread_id])
                _delete_checkpoints(cursor, thread_id, superfluous(rows, keep))

    def delete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread, all or nothing."""
        with connection_in(self.tenant_id) as connection:
            for table in _TABLES:
                connection.execute(
                    f"DELETE FROM {table} WHERE thread_id = %s",  # noqa: S608  (our constants)
                    (str(thread_id),),
                )

    # --- The same for asynchronous callers ----------------------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        found = await asyncio.to_thread(
            lambda: [*self.list(config, filter=filter, before=before, limit=limit)]
        )
        for checkpoint in found:
            yield checkpoint

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest", keep: int = 1
    ) -> None:
        await asyncio.to_thread(self.prune, thread_ids, strategy=strategy, keep=keep)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await asyncio.to_thread(
            self.get_delta_channel_history, config=config, channels=channels
        )


def _texts(name: str, values: Sequence[str]) -> list[str]:
    if isinstance(values, str):
        raise InvalidArgument(f"{name}={values!r} is one id; pass a list of them")
    return [str(value) for value in values]


def _refuse_delta_channels(cursor: Cursor[DictRow], thread_ids: list[str]) -> None:
    cursor.execute(PRUNE_DELTA_THREADS_SQL, (thread_ids, thread_ids))
    if names := sorted(row["thread_id"] for row in cursor.fetchall()):
        raise NotImplementedError(
            f"checkpoints of {', '.join(names)} cannot go one by one: a DeltaChannel's value is"
            " rebuilt from all of them"
        )


def _delete_checkpoints(
    cursor: Cursor[DictRow], thread_id: str, going: Mapping[str, set[str]]
) -> None:
    """Delete checkpoints of a thread by namespace, with what only they refer to."""
    for namespace, ids in going.items():
        of_namespace = (thread_id, namespace)
        cursor.execute(_DELETE_WRITES_SQL, (*of_namespace, list(ids)))
        cursor.execute(_DELETE_CHECKPOINTS_SQL, (*of_namespace, list(ids)))
        freed = {item for row in cursor.fetchall() for item in (row["versions"] or {}).items()}
        cursor.execute(_ORPHAN_CHILDREN_SQL, (*of_namespace, list(ids)))
        cursor.execute(_VERSIONS_IN_USE_SQL, of_namespace)
        in_use = {(row["channel"], row["version"]) for row in cursor.fetchall()}
        unused: dict[str, list[str]] = defaultdict(list)
        for channel, version in freed:
            if (channel, str(version)) not in in_use:
                unused[channel].append(str(version))
        for channel, versions in unused.items():
            cursor.execute(_DELETE_BLOBS_SQL, (*of_namespace, channel, versions))
