"""The Postgres advisory locks of tenancy, declared together so that each key has one purpose.

They belong to a session: Postgres frees those of a killed process. A key is a pair of integers;
the first one identifies the purpose.

No statement waits for a lock. A waiting statement keeps its snapshot, and CREATE INDEX CONCURRENTLY
waits for all snapshots, also in the session that holds the lock: a deadlock.
"""

import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Final
from uuid import UUID

from django.db import InterfaceError, OperationalError

from tenants.context import execute, fetch_value, tenant_connection
from tenants.exceptions import PooledOwner, SchemaBusy

FIRST_PAUSE_SECONDS = 0.005
MAX_PAUSE_SECONDS = 0.1


def poll(try_lock: Callable[[], bool], *, seconds: float) -> bool:
    """Call `try_lock` until it returns True; return False after so many seconds.

    Args:
        try_lock: tries once, for example with `SELECT pg_try_advisory_lock(…)`.
    """
    deadline = time.monotonic() + seconds
    pause = FIRST_PAUSE_SECONDS
    while not try_lock():
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(2 * pause, MAX_PAUSE_SECONDS)
    return True


MIGRATE_ALL: Final = (7_401, 0)
MIGRATE_SCHEMA: Final = 7_402
ERASURE: Final = 7_403
MERGE: Final = 7_404
RESTORE: Final = (7_405, 0)

# Setting up a tenant takes seconds. A migration that builds indexes of a large tenant takes longer;
# then a waiting caller gets an error.
WAIT_SECONDS: Final = 300.0


def migrate_lock() -> AbstractContextManager[bool]:
    """Hold the lock of `manage.py migrate`; yield False if another run holds it."""
    return _lock_unless_held(MIGRATE_ALL)


def restore_lock() -> AbstractContextManager[bool]:
    """Hold the lock of `manage.py restore`; yield False if another one holds it.

    A restore decides at its beginning which tenants to restore. Another one at the same time would
    restore a tenant twice, and lose its data between the two.
    """
    return _lock_unless_held(RESTORE)


@contextmanager
def schema_lock(schema_name: str, *, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Keep other processes from creating, migrating or dropping this schema.

    Raises:
        SchemaBusy: another process held the lock for all of this time.
    """
    # Two names with the same checksum wait for each other: slower, but correct.
    key = (MIGRATE_SCHEMA, zlib.crc32(schema_name.encode()) - 2**31)
    if not poll(partial(_try_lock, key), seconds=wait_seconds):
        raise SchemaBusy(
            f"another process makes, migrates or drops the schema {schema_name}: wait for its end,"
            " or end it, and try again"
        )
    try:
        yield
    finally:
        _unlock(key)


def owner_lock(purpose: int, request_id: UUID) -> AbstractContextManager[bool]:
    """Hold the lock of an erasure or a merge; yield False if another process holds it.

    Args:
        purpose: ERASURE or MERGE.
        request_id: of the request.
    """
    return _lock_unless_held((purpose, zlib.crc32(request_id.bytes) - 2**31))


@contextmanager
def _lock_unless_held(key: tuple[int, int]) -> Iterator[bool]:
    is_held = _try_lock(key)
    try:
        yield is_held
    finally:
        if is_held:
            _unlock(key)


def _try_lock(key: tuple[int, int]) -> bool:
    refuse_pooled_owner()
    return bool(fetch_value("SELECT pg_try_advisory_lock(%s, %s)", key))


def refuse_pooled_owner() -> None:
    """Refuse an operation that needs a session, if the owner connects through a pooler.

    Raises:
        PooledOwner: this process reaches Postgres through a pooler.
    """
    connection = tenant_connection()
    if connection.is_owners and connection.is_pooled:
        raise PooledOwner(
            "DATABASE_OWNER_URL goes through a connection pooler: migrating and provisioning hold"
            " locks of their session and build indexes outside of transactions. Set it to the"
            " address of Postgres itself; DATABASE_URL may keep the pooler's"
        )


def _unlock(key: tuple[int, int]) -> None:
    connection = tenant_connection()
    # In a broken transaction, or without a connection, the lock ends with the session.
    if connection.connection is not None and not connection.needs_rollback:
        try:
            execute("SELECT pg_advisory_unlock(%s, %s)", key)
        except (InterfaceError, OperationalError):
            connection.close()
