"""Advisory locks of the orchestrator: the one list of what is locked, and under which name."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, InterfaceError, connection

from konstruct.orchestrator.messages import KonstructMessage


@contextmanager
def thread_lock(message: KonstructMessage) -> Iterator[bool]:
    """Hold the thread of this message; yields False at once if another worker holds it.

    Postgres frees the lock with the connection, thus the instant a worker dies, with no time-out to
    guess. It belongs to the session, not to a transaction, since a language model is asked inside.
    """
    # Lengths keep apart what a separator alone would not: ids are any text that a channel makes.
    parts = (message.tenant_id, message.agent_id, message.user_id, message.thread_id)
    key = "\x1f".join(["konstruct.thread", *(f"{len(str(part))}:{part}" for part in parts)])
    if not _ask("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", key):
        yield False
        return
    try:
        yield True
    finally:
        # A connection that broke took the lock with it.
        with contextlib.suppress(DatabaseError, InterfaceError):
            _ask("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", key)


def _ask(sql: str, key: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(sql, [key])
        return bool(cursor.fetchone()[0])
