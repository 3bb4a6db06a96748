"""The advisory lock of the channels."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connection


@contextmanager
def delivery_lock(tenant_id: UUID, message_id: UUID) -> Iterator[bool]:
    """Hold a delivery; yields False at once if another worker holds it.

    A session's lock: Postgres frees it the instant a worker dies, and no transaction is open while
    the channel is asked.
    """
    key = f"konstruct.delivery\x1f{tenant_id}\x1f{message_id}"
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
