"""LangGraph's Postgres saver inside one tenant, with a serializer that builds only allowed classes.

LangGraph writes an object as the name of its module and class with its arguments. Each value is
checked before it is decoded and after it is encoded: an object of a class that is not allowed is
refused, before its module is imported and before it is stored.
"""

import asyncio
import json
import math
import re
import threading
from collections import abc
from contextlib import contextmanager, nullcontext
from enum import Enum
from functools import wraps
from typing import Any, Final, Self, cast
from uuid import UUID

import ormsgpack
from django.conf import settings
from django.db import connections
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_METHODS, SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from psycopg import Cursor, IsolationLevel, rows

from memory import arguments, exceptions
from tenants import models, naming, transaction
from tenants.audit.people import hold_people
from tenants.context import tenant_connection, tenant_scope
from tenants.limits import quotas
from tenants.postgresql.base import DatabaseWrapper

ClassName = tuple[str, str]

# Threads of graphs that have a connection at a time, in each process.
MAX_CONNECTIONS: Final = 8
# Nested values: each level copies the levels below it, so the cost is depth times size.
MAX_DEPTH: Final = 64
_OPTION: Final = ormsgpack.OPT_NON_STR_KEYS
# `msgpack+aes`: the output of EncryptedSerializer.
_ENCRYPTED: Final = re.compile(r"(?:null|bytes|bytearray|json|msgpack)\+\w+")
# Postgres knows the size of a value without reading it.
_NEWEST_VALUE_SQL = """
    SELECT inline, type, bytes, CASE WHEN bytes > %(most)s THEN NULL ELSE blob END AS blob FROM (
        SELECT inline, value.type, value.blob,
               coalesce(octet_length(value.blob), octet_length(inline::text), 0) AS bytes
        FROM checkpoints AS newest CROSS JOIN LATERAL (
            SELECT checkpoint -> 'channel_values' -> %(channel)s::text AS inline
        ) AS own LEFT JOIN checkpoint_blobs AS value
            ON value.thread_id = newest.thread_id AND value.checkpoint_ns = newest.checkpoint_ns
            AND value.channel = %(channel)s
            AND value.version = checkpoint -> 'channel_versions' ->> %(channel)s::text
        WHERE newest.thread_id = %(thread)s AND newest.checkpoint_ns = ''
        ORDER BY checkpoint_id DESC LIMIT 1
    ) AS found
"""
_connections_left = threading.BoundedSemaphore(MAX_CONNECTIONS)


@contextmanager
def _in_tenant(tenant_id: UUID) -> abc.Iterator[DatabaseWrapper]:
    """Enter the tenant. Connections that the block opens are closed after it.

    LangGraph saves from its own threads, which begin and end with every run.
    """
    without = [wrapper for wrapper in connections.all() if wrapper.connection is None]
    is_new = cast(DatabaseWrapper, connections["default"]) in without
    with _connections_left if is_new else nullcontext(), tenant_scope(tenant_id):
        try:
            wrapper = tenant_connection()
            wrapper.close_if_broken()
            yield wrapper
        finally:
            for opened in without:
                opened.close()


def _in_thread(method: abc.Callable[..., Any]) -> abc.Callable[..., abc.Coroutine[Any, Any, Any]]:
    """Return a coroutine function that runs the method in a thread."""

    @wraps(method)
    async def run_in_thread(*args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(method, *args, **kwargs)

    return run_in_thread


class TenantPostgresSaver(PostgresSaver):
    """`PostgresSaver` for `graph.compile(checkpointer=...)`: every statement runs in one tenant.

    It may be used from any thread and any event loop: each operation uses the thread's connection
    of Django, or opens one, and the asynchronous methods run the synchronous ones in a thread. It
    reads only data: an object of a class that is not allowed is refused, also when it is written.
    """

    _level: IsolationLevel | None = None

    def __init__(self, tenant_id: UUID | str, *, serde: SerializerProtocol | None = None) -> None:
        # The base class would keep a connection; here `_cursor` uses the thread's.
        super().__init__(None, serde=strict_serializer(serde))  # type: ignore[arg-type]
        self.tenant_id = naming.as_tenant_id(tenant_id)

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> abc.Iterator[Cursor[rows.DictRow]]:
        """Open a cursor inside the tenant; all of its statements are one transaction."""
        with _in_tenant(self.tenant_id) as wrapper:
            wrapper.ensure_connection()
            connection = wrapper.connection
            if self._level is not None:
                connection.isolation_level = self._level
            try:
                with transaction.atomic():
                    wrapper.enter()
                    in_pipeline = connection.pipeline() if pipeline else nullcontext()
                    with (
                        in_pipeline,
                        connection.cursor(binary=True, row_factory=rows.dict_row) as cursor,
                    ):
                        yield cursor
            finally:
                if self._level is not None and not connection.closed:
                    connection.isolation_level = None

    def setup(self) -> None:
        """Check that the tenant has LangGraph's tables in the installed version.

        `manage.py migrate` creates them with the tenant.

        Raises:
            SessionTablesOutdated: they are missing or too old.
        """
        with self._cursor() as cursor:
            cursor.execute("SELECT to_regclass('checkpoint_migrations') IS NOT NULL AS made")
            version = -1
            if (cursor.fetchone() or {})["made"]:
                cursor.execute("SELECT coalesce(max(v), -1) AS version FROM checkpoint_migrations")
                version = (cursor.fetchone() or {})["version"]
        if version < (wanted := len(self.MIGRATIONS) - 1):
            raise exceptions.SessionTablesOutdated(
                f"tenant {self.tenant_id} has LangGraph's tables in version {version} and"
                f" needs {wanted}: run `manage.py migrate`"
            )

    # --- Writing ----------------------------------------------------------------------------

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """As in the base class.

        Raises:
            InvalidArgument: the thread id is no id of new rows.
            CheckpointRefused: the metadata, or a value that is stored as JSON, cannot be stored.
            PersonBeingErased: an erasure of the user in the metadata is requested, and not done.
            QuotaExceeded: the tenant's storage is full.
        """
        check_json("metadata", metadata)
        for channel, value in checkpoint["channel_values"].items():
            if isinstance(value, str | float | int):
                check_json(f"the channel {channel!r}", value)
        with self._writing(config):
            if isinstance(user_id := metadata.get("user_id"), str):
                hold_people([user_id])
            return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, *args: Any, **kwargs: Any) -> None:
        """As in the base class. Raises InvalidArgument and QuotaExceeded as `put`."""
        with self._writing(config):
            super().put_writes(config, *args, **kwargs)

    @contextmanager
    def _writing(self, config: Any) -> abc.Iterator[None]:
        """Run the block in a transaction, unless the thread or the tenant refuses new rows."""
        arguments.new_id_argument("thread_id", str(config["configurable"]["thread_id"]))
        with _in_tenant(self.tenant_id), transaction.atomic():
            quotas.refuse_full_storage(
                models.Tenant.objects.only("quotas", "usage").get(pk=self.tenant_id)
            )
            yield

    # --- Methods that the base class lacks -----------------------------------------------------

    def newest_value(self, thread_id: str, channel: str, max_bytes: int | None = None) -> Any:
        """Return one channel's value in the thread's newest state; None if there is none.

        Other channels are not read: they may hold values that only their graph can read.

        Raises:
            CheckpointRefused: the value has an object of a class that is not allowed.
            UnreadableSession: the value has more than `max_bytes`.
        """
        values = {"thread": str(thread_id), "channel": channel, "most": max_bytes}
        with self._cursor() as cursor:
            cursor.execute(_NEWEST_VALUE_SQL, values)
            found = cursor.fetchone()
        if found is None:
            return None
        if max_bytes is not None and found["bytes"] > max_bytes:
            raise exceptions.UnreadableSession(
                f"the {channel} of thread {thread_id!r} have {found['bytes']:,} bytes;"
                f" at most {max_bytes:,} are read here"
            )
        if found["type"] in (None, "empty"):
            return found["inline"]
        return self.serde.loads_typed((found["type"], found["blob"]))

    def list(self, *args: Any, **kwargs: Any) -> abc.Iterator[CheckpointTuple]:
        """As in the base class, but the connection is returned before the first result."""
        yield from [*super().list(*args, **kwargs)]

    def prune(self, thread_ids: abc.Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As in the base class, in transactions of the isolation level that it sets.

        Postgres refuses to change the level inside the transactions that `_cursor` opens.
        """
        saver = type(self)(self.tenant_id, serde=self.serde)
        saver._level = IsolationLevel.REPEATABLE_READ
        super(TenantPostgresSaver, saver).prune(thread_ids, strategy=strategy)

    # --- Asynchronous methods -----------------------------------------------------------------

    aget_tuple = _in_thread(PostgresSaver.get_tuple)
    aput = _in_thread(put)
    aput_writes = _in_thread(put_writes)
    adelete_thread = _in_thread(PostgresSaver.delete_thread)
    aprune = _in_thread(prune)
    aget_delta_channel_history = _in_thread(PostgresSaver.get_delta_channel_history)

    async def alist(self, *args: Any, **kwargs: Any) -> abc.AsyncIterator[CheckpointTuple]:
        for checkpoint in await asyncio.to_thread(lambda: [*self.list(*args, **kwargs)]):
            yield checkpoint


# --- Values ---------------------------------------------------------------------------------------


class StrictSerializer(jsonplus.JsonPlusSerializer):
    """LangGraph's serializer for plain data, LangChain's messages, and named classes.

    Args:
        classes: classes besides those of the setting CHECKPOINT_TYPES: (module, class), or classes.
    """

    def __init__(self, classes: abc.Iterable[abc.Collection[str] | type] = ()) -> None:
        self.allowed = allowed_classes(classes)
        super().__init__(allowed_msgpack_modules=self.allowed, pickle_fallback=False)

    def with_msgpack_allowlist(
        self, extra_allowlist: abc.Iterable[abc.Collection[str] | type]
    ) -> Self:
        """Return a serializer that allows these too.

        LangGraph passes the classes of a graph's state.
        """
        return type(self)([*self.allowed, *extra_allowlist])

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Encode a value. Raises CheckpointRefused if it could not be read again."""
        try:
            type_, data = super().dumps_typed(obj)
        except ormsgpack.MsgpackEncodeError as error:
            raise exceptions.CheckpointRefused(
                f"a checkpoint cannot hold this value: {error}; keep plain data in its place"
            ) from error
        check_value(type_, bytes(data), self.allowed)
        return type_, data

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Decode a value. Raises CheckpointRefused for an object of a class that is not allowed."""
        check_value(*data, self.allowed)
        return super().loads_typed(data)


def strict_serializer(serde: SerializerProtocol | None) -> SerializerProtocol:
    """Return the serializer that a checkpointer uses instead of this one.

    LangGraph's serializers become strict and keep the classes that they name; serializers of other
    types are not changed.
    """
    if serde is None:
        return StrictSerializer()
    if isinstance(serde, EncryptedSerializer):
        return EncryptedSerializer(serde.cipher, strict_serializer(serde.serde))
    if isinstance(serde, jsonplus.JsonPlusSerializer) and not isinstance(serde, StrictSerializer):
        named = serde._allowed_msgpack_modules
        return StrictSerializer(named if isinstance(named, set) else ())
    return serde


def allowed_classes(extra: abc.Iterable[abc.Collection[str] | type] = ()) -> frozenset[ClassName]:
    """Return the allowed classes: LangGraph's own list, CHECKPOINT_TYPES, and `extra`."""
    of_extra = [(cls.__module__, cls.__name__) if isinstance(cls, type) else cls for cls in extra]
    of_settings = [path.rpartition(".")[::2] for path in settings.CHECKPOINT_TYPES]
    return frozenset(
        (str(module), str(name)) for module, name in [*SAFE_MSGPACK_TYPES, *of_extra, *of_settings]
    )


def check_value(type_: str, data: bytes, allowed: abc.Collection[ClassName]) -> None:
    """Check one value of a checkpoint without building an object.

    Args:
        type_: the encoding, from the row.
        allowed: the allowed modules and classes.

    Raises:
        CheckpointRefused: the encoding is not LangGraph's, or the value has an object of a class
            that is not allowed.
    """
    if type_ not in ("msgpack", "json", "null", "bytes", "bytearray"):
        raise exceptions.CheckpointRefused(
            f"a checkpoint's value has the encoding {type_[:80]!r}, which is not read: only"
            " msgpack, json, bytes, bytearray and null are"
        )
    # ormsgpack ignores exceptions of its hook, so the refusals are stored here.
    refusals: list[str] = []
    try:
        if type_ == "msgpack":
            ormsgpack.unpackb(data, ext_hook=_checks(allowed, refusals), option=_OPTION)
        elif type_ == "json":
            # LangGraph wrote LangChain's constructors before msgpack.
            json.loads(data, object_hook=lambda value: _refuse_constructor(value, refusals))
    except (ValueError, RecursionError) as error:
        refusals = refusals or [f"is not readable {type_}: {str(error)[:200]}"]
    if refusals:
        raise exceptions.CheckpointRefused(f"a checkpoint's value {refusals[0]}")


def _checks(
    allowed: abc.Collection[ClassName], refusals: list[str], depth: int = 0
) -> abc.Callable[[int, bytes], object]:
    """Return the hook that checks the objects in a value, and gives a new object for each."""

    def check(code: int, data: bytes) -> object:
        if depth >= MAX_DEPTH:
            refusals.append(f"nests objects more than {MAX_DEPTH} deep")
            raise ValueError
        hook = _checks(allowed, refusals, depth + 1)
        parts = ormsgpack.unpackb(data, ext_hook=hook, option=_OPTION)
        if code in (jsonplus.EXT_DELTA_SNAPSHOT, jsonplus.EXT_NUMPY_ARRAY):
            return object()
        if code > jsonplus.EXT_DELTA_SNAPSHOT or not isinstance(parts, list) or len(parts) < 3:
            refusals.append(f"holds an object of the unknown kind {code}")
            return object()
        module, name = parts[:2]
        class_name = f"{module!s:.80}.{name!s:.80}"
        if type(module) is not str or type(name) is not str:
            refusals.append("holds an object whose class is not named by text")
        elif code == jsonplus.EXT_METHOD_SINGLE_ARG:
            if (module, name, *map(str, parts[3:])) not in SAFE_MSGPACK_METHODS:
                refusals.append(
                    f"holds {class_name}, which is not built by a method: keep plain data"
                )
        elif (module, name) not in allowed:
            refusals.append(
                f"holds {class_name}, which is not allowed there: name it in CHECKPOINT_TYPES if it"
                " is a class of yours, or keep plain data in its place"
            )
        return object()

    return check


def _refuse_constructor(value: dict[str, Any], refusals: list[str]) -> dict[str, Any]:
    if value.get("lc") in (1, 2) and "id" in value:
        refusals.append(f"holds the constructor {value['id']!r:.80} in JSON, which is not called")
    return value


def check_stored_value(type_: str, data: bytes, allowed: abc.Collection[ClassName]) -> None:
    """As `check_value`, for a row whose value may be encrypted or missing.

    An encrypted value is checked when it is decrypted.
    """
    if type_ != "empty" and not _ENCRYPTED.fullmatch(type_):
        check_value(type_, data, allowed)


def check_json(where: str, value: Any) -> None:
    """Check a value that Postgres stores as JSON.

    Raises:
        CheckpointRefused: it has text or a number that JSON of Postgres cannot hold, or a member of
            an enumeration, which would come back as text.
    """
    if isinstance(value, abc.Mapping):
        for name, item in value.items():
            check_json(where, name)
            check_json(f"{where}[{name!r:.80}]", item)
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            check_json(f"{where}[{place}]", item)
    elif isinstance(value, Enum):
        raise exceptions.CheckpointRefused(
            f"{where} holds {value!r:.80}: use its value, or a list with it"
        )
    elif isinstance(value, float) and not math.isfinite(value):
        raise exceptions.CheckpointRefused(
            f"{where} holds {value}, which JSON does not have; use None"
        )
    elif isinstance(value, str):
        try:
            arguments.text_argument(where, value)
        except exceptions.InvalidArgument as error:
            raise exceptions.CheckpointRefused(str(error)) from error
