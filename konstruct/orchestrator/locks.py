"""Advisory locks of the orchestrator: the one list of what is locked, and under which name."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import DatabaseError, InterfaceError, connection

from konstruct.orchestrator.messages import KonstructMessage


@contextmanager
def thread_lock(message: KonstructMessage) -> Iterator[bool]:
    """Hold the thread of this message; yields False at once if another worker holds it.

    Postgres frees a session's lock with the connection, thus the instant a worker dies, with no
    time-out to guess. It is no transaction's lock, since a language model is asked inside.
    """
    key = _key("konstruct.thread", message, message.thread_id)
    if not _ask("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", key):
        yield False
        return
    try:
        yield True
    finally:
        _unlock(key)


def wait_for_thread(message: KonstructMessage) -> None:
    """Return when the worker that answers in this message's thread, if there is one, is done."""
    key = _key("konstruct.thread", message, message.thread_id)
    _ask("SELECT pg_advisory_lock(hashtextextended(%s, 0)) IS NULL", key)
    _unlock(key)


@contextmanager
def window_lock(message: KonstructMessage) -> Iterator[None]:
    """Hold the window of this message's user, waiting for who holds it: for milliseconds only.

    Threads of one user are answered side by side and share a window. Inside, a reply is recorded
    and appended in one go, so that the window has the transcript's order. Taken inside of a
    thread's lock, never around one.
    """
    key = _key("konstruct.window", message)
    _ask("SELECT pg_advisory_lock(hashtextextended(%s, 0)) IS NULL", key)
    try:
        yield
    finally:
        _unlock(key)


def _key(purpose: str, message: KonstructMessage, *more: str) -> str:
    # Lengths keep apart what a separator alone would not: ids are any text that a channel makes.
    parts = [str(message.tenant_id), str(message.agent_id), message.user_id, *more]
    return "\x1f".join([purpose, *(f"{len(part)}:{part}" for part in parts)])


def _unlock(key: str) -> None:
    # A connection that broke took the lock with it.
    with suppress(DatabaseError, InterfaceError):
        _ask("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", key)


def _ask(sql: str, key: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(sql, [key])
        return bool(cursor.fetchone()[0])
