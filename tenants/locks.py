"""Postgres advisory locks of tenancy: all of them, so that none is taken for two purposes.

They belong to the session, so that a killed process frees its own. A key is a pair of integers;
the first one names the purpose.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from tenants.context import tenant_connection

MIGRATE_ALL = (7_401, 0)
MIGRATE_SCHEMA = 7_402


@contextmanager
def only_one_migrate() -> Iterator[bool]:
    """Hold the lock of a migrate run over the schemas; yield False if another run holds it."""
    with tenant_connection().cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", MIGRATE_ALL)
        (held,) = cursor.fetchone()
    try:
        yield held
    finally:
        if held:
            _unlock(MIGRATE_ALL)


@contextmanager
def schema_lock(schema_name: str) -> Iterator[None]:
    """Wait until no other process migrates this schema, and keep others waiting meanwhile."""
    # Two names with one checksum would wait for each other: slower, not wrong.
    key = (MIGRATE_SCHEMA, zlib.crc32(schema_name.encode()) - 2**31)
    with tenant_connection().cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s, %s)", key)
    try:
        yield
    finally:
        _unlock(key)


def _unlock(key: tuple[int, int]) -> None:
    connection = tenant_connection()
    # In a broken transaction, or without a connection, the lock goes with the session instead.
    if connection.connection is not None and not connection.needs_rollback:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", key)
