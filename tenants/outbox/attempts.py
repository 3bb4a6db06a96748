"""Attempts at work that waits in a table: counted before the work, so that none is tried for ever.

A row has `attempts`, and `begun_at` while a worker has it in hand. A worker that finds `begun_at`
set, and holds the lock that the other had, knows that the other has died over it.
"""

from contextlib import suppress
from typing import Any

from billiard.common import terminate_handler_fired  # type: ignore[attr-defined]  # its stubs are older
from celery.exceptions import SoftTimeLimitExceeded
from django.db import DatabaseError, InterfaceError
from django.db.models import F, QuerySet
from django.db.models.functions import Greatest, Now

from tenants.context import connection
from tenants.exceptions import KonstructError

# A worker may be killed for reasons of its own: once, the work is taken up again at once.
FORGIVEN = 1


class WorkerLost(KonstructError):
    """The worker that had this in hand has died."""

    code = "worker_lost"


class TookTooLong(KonstructError):
    """The work was stopped, for it took longer than a task may."""

    code = "time_limit"


# Codes of failures that may have left a part of the work done.
INTERRUPTED = frozenset({WorkerLost.code, TookTooLong.code})


def begin(rows: "QuerySet[Any]", *, most: int, **also: Any) -> bool:
    """Count an attempt at the one row, before the work; False if there is no such row any more.

    Call it outside of a transaction, holding the lock of whoever works on the row.

    Args:
        most: attempts after which it is given up.
        also: what else is to be written on the row.

    Raises:
        WorkerLost: the last worker died over it, and not for the first time, or it was the last
            attempt. Record it like any other failure.
    """
    count = {"attempts": F("attempts") + 1, "begun_at": Now(), **also}
    if rows.filter(begun_at__isnull=True).update(**count):
        return True
    lost = rows.values_list("attempts", flat=True).first()
    if lost is None:
        return False
    if lost > FORGIVEN or lost >= most:
        raise WorkerLost("The worker was killed, or lost its connection, while it was at work.")
    return bool(rows.update(**count))


def end(rows: "QuerySet[Any]") -> int | None:
    """End the attempt at the one row, which failed; its number, None if there is no such row.

    What fails without having been begun has had an attempt all the same.
    """
    rows.filter(begun_at__isnull=True).update(attempts=F("attempts") + 1)
    rows.update(begun_at=None)
    number: int | None = rows.values_list("attempts", flat=True).first()
    return number


def take_back(rows: "QuerySet[Any]") -> None:
    """Let an attempt that was begun not count: it was neither done nor did it fail."""
    rows.filter(begun_at__isnull=False).update(
        attempts=Greatest(F("attempts") - 1, 0), begun_at=None
    )


def take_back_if_stopping(rows: "QuerySet[Any]") -> None:
    """Do so if this worker was told to end. What raises SystemExit by itself has had its attempt.

    Call it while the exception that ends the process goes by; nothing is raised in its place.
    """
    if terminate_handler_fired():
        # Stopped in the middle of a statement, the attempt counts.
        with suppress(DatabaseError, InterfaceError):
            take_back(rows)


def failure_of(error: Exception) -> Exception:
    """Return the error that is recorded: of a time limit, one that says so.

    The time limit may have interrupted a statement: a connection that cannot go on is closed, so
    that the failure can be recorded on another.
    """
    if not isinstance(error, SoftTimeLimitExceeded):
        return error
    if not connection.in_atomic_block and not connection.is_usable():
        connection.close()
    return TookTooLong("It took longer than a worker may take, and was stopped.")
