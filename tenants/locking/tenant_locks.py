"""A tenant's locks that outlast a statement, such as while a language model is asked.

Each is held by a transaction of a connection that does nothing else: a session of a pooler's may be
another's in the next statement, a transaction is not. Postgres frees it with the connection, thus
the instant that a process dies, with no time-out to guess. The name of a lock belongs to the
tenant, so that no tenant's SQL can hold another's.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import DatabaseError, InterfaceError, OperationalError

from tenants.context import tenant_connection
from tenants.postgresql.base import DatabaseWrapper


@contextmanager
def held_lock(key: str) -> Iterator[bool]:
    """Hold the lock of the current tenant with this name; yields False if somebody else does.

    Locks that are taken inside of the block are given back inside of it. Whoever closes this
    thread's connection gives back all.
    """
    holder = tenant_connection().lock_holder()
    depth = holder.locks_held
    if not _take(holder, key, depth):
        _give_back(holder, depth)
        yield False
        return
    holder.locks_held += 1
    try:
        yield True
    finally:
        holder.locks_held = depth
        _give_back(holder, depth)


def held_of(keys: list[str]) -> list[str]:
    """Which of these locks of the current tenant somebody holds; takes none."""
    with tenant_connection().cursor() as cursor:
        cursor.execute("SELECT public.held_tenant_locks(%s)", [keys])
        return [key for (key,) in cursor.fetchall()]


def _take(holder: DatabaseWrapper, key: str, depth: int) -> bool:
    if depth:
        return _ask(holder, key, f"SAVEPOINT lock_{depth}")
    # Nobody waits for this one but us, however long the work takes.
    first = "SET LOCAL idle_in_transaction_session_timeout = 0"
    try:
        holder.set_autocommit(False)
        return _ask(holder, key, first)
    except (OperationalError, InterfaceError):  # it broke since it was used last
        holder.close()
        holder.set_autocommit(False)
        return _ask(holder, key, first)


def _ask(holder: DatabaseWrapper, key: str, first: str) -> bool:
    return holder.ask("SELECT public.try_tenant_lock($1)", key, first=first) == b"t"


def _give_back(holder: DatabaseWrapper, depth: int) -> None:
    # A connection that broke took its locks with it.
    with suppress(DatabaseError, InterfaceError):
        if depth:
            savepoint = f"SAVEPOINT lock_{depth}"
            holder.ask(f"RELEASE {savepoint}", first=f"ROLLBACK TO {savepoint}")
        else:
            holder.rollback()
