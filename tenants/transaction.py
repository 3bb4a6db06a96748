"""Django's transactions on the server of the current tenant."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from django.db import transaction  # noqa: TID251 (this is where it is chosen)

from tenants.context import current_server


def atomic(*, savepoint: bool = True, durable: bool = False) -> AbstractContextManager[None]:
    """Run the block in a transaction, or in a savepoint of an open one.

    It cannot be a decorator: the server would be the one at import time.
    """
    return transaction.atomic(using=current_server(), savepoint=savepoint, durable=durable)


def on_commit(function: Callable[[], object]) -> None:
    """Call the function when the current transaction is committed; at once if there is none."""
    transaction.on_commit(function, using=current_server())


def set_rollback(rollback: bool) -> None:
    """Set whether the innermost transaction is rolled back at its end."""
    transaction.set_rollback(rollback, using=current_server())
