"""Advisory locks of the channels: what is locked, and under which name."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connection


def delivery_lock(tenant_id: UUID, message_id: UUID) -> AbstractContextManager[bool]:
    """Hold a delivery; gives False at once if another worker holds it."""
    return _lock(f"konstruct.delivery\x1f{tenant_id}\x1f{message_id}")


def arrivals_lock(tenant_id: UUID, channel: str, workspace: str) -> AbstractContextManager[bool]:
    """Hold what arrives from a workspace; gives False at once if another worker holds it."""
    return _lock(f"konstruct.arrivals\x1f{tenant_id}\x1f{channel}\x1f{workspace}")


@contextmanager
def _lock(key: str) -> Iterator[bool]:
    """A session's lock: Postgres frees it the instant a worker dies, with no time-out to guess.

    No transaction is open while a channel is asked.
    """
    if not _ask("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", key):
        yield False
        return
    try:
        yield True
    finally:
        # A connection that broke took the lock with it.
        with suppress(DatabaseError, InterfaceError):
            _ask("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", key)


def _ask(sql: str, key: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(sql, [key])
        return bool(cursor.fetchone()[0])
