"""Django's transactions, on the server of the tenant that this thread is in."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from django.db import transaction  # noqa: TID251 (this is where it is chosen)

from tenants.context import current_server


def atomic(*, savepoint: bool = True, durable: bool = False) -> AbstractContextManager[None]:
    """Do the block in a transaction, or in a savepoint of the one that is open there.

    It decorates no function: the server would be that of the import.
    """
    return transaction.atomic(using=current_server(), savepoint=savepoint, durable=durable)


def on_commit(function: Callable[[], object]) -> None:
    """Call the function when the transaction that we are in is committed; now if there is none."""
    transaction.on_commit(function, using=current_server())


def set_rollback(rollback: bool) -> None:
    """Let the innermost transaction end in a rollback, or not."""
    transaction.set_rollback(rollback, using=current_server())
