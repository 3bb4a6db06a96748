"""Transactions on a connection.

Not apsw's `with connection`: that waits for another writer without letting go of the GIL (seen with
apsw 3.54), and if the writer is a thread of this process, it waits in vain until the time is up.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw


@contextmanager
def writing(connection: apsw.Connection) -> Iterator[apsw.Connection]:
    """All that is written inside, or nothing of it. Inside another transaction: a savepoint.

    The write lock is taken at the beginning: a transaction that reads first and writes later cannot
    wait for another writer.
    """
    with _transaction(connection, "BEGIN IMMEDIATE"):
        yield connection


@contextmanager
def reading(connection: apsw.Connection) -> Iterator[apsw.Connection]:
    """All that is read inside is of one moment; nobody waits for it."""
    with _transaction(connection, "BEGIN DEFERRED"):
        yield connection


@contextmanager
def _transaction(connection: apsw.Connection, begin: str) -> Iterator[None]:
    if connection.in_transaction:
        begin, undo, end = "SAVEPOINT inner", "ROLLBACK TO inner; RELEASE inner", "RELEASE inner"
    else:
        undo, end = "ROLLBACK", "COMMIT"
    connection.execute(begin)
    try:
        yield
        connection.execute(end)
    except BaseException:
        # A full disk, for one, has made SQLite roll back by itself.
        if connection.in_transaction:
            connection.execute(undo)
        raise
