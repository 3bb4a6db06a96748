"""Django's migrate and its executor, for the schema that the connection is in."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.core.management.commands import migrate as django_migrate
from django.db import transaction
from django.db.migrations.executor import MigrationExecutor

from tenants.context import current_server

# Options of Django's migrate that ours passes on, and their defaults.
DJANGO_OPTIONS: dict[str, Any] = {
    "app_label": None,
    "migration_name": None,
    "fake": False,
    "fake_initial": False,
    "plan": False,
    "check_unapplied": False,
    "run_syncdb": False,
    "prune": False,
    "verbosity": 0,
}
# Those that are always the same.
_FIXED: dict[str, Any] = {
    "interactive": False,
    "skip_checks": True,
    "no_color": True,
    "force_color": False,
    "traceback": False,
}


_lock_timeout: ContextVar[str] = ContextVar("lock_timeout", default="")


@contextmanager
def lock_timeout(duration: str) -> Iterator[None]:
    """In the block, let a migration wait for a lock no longer than this, such as "2s".

    A migration that is no transaction waits for as long as it takes: for the ends of others'
    transactions, in which nobody waits for it.
    """
    token = _lock_timeout.set(duration)
    try:
        yield
    finally:
        _lock_timeout.reset(token)


def be_impatient() -> list[str]:
    """Statements by which a transaction ends with an error where a lock is not had in time."""
    duration = _lock_timeout.get()
    return [f"SET LOCAL lock_timeout = '{duration}'"] if duration else []


@contextmanager
def impatient_transaction(connection: Any) -> Iterator[None]:
    """A transaction that ends with an error where a lock is not to be had in time."""
    with transaction.atomic(using=connection.alias):
        for statement in be_impatient():
            with connection.cursor() as cursor:
                cursor.execute(statement)
        yield


class AtomicExecutor(MigrationExecutor):
    """Django's executor, which notes a migration as applied in the transaction that applies it.

    Django itself does so after the transaction where SQL was deferred to its end, as foreign keys
    are. Killed in between, it would apply the migration a second time.
    """

    def apply_migration(
        self, state: Any, migration: Any, fake: bool = False, fake_initial: bool = False
    ) -> Any:
        if not migration.atomic:
            return super().apply_migration(state, migration, fake, fake_initial)
        with impatient_transaction(self.connection):
            return super().apply_migration(state, migration, fake, fake_initial)

    def unapply_migration(self, state: Any, migration: Any, fake: bool = False) -> Any:
        if not migration.atomic:
            return super().unapply_migration(state, migration, fake)
        with impatient_transaction(self.connection):
            return super().unapply_migration(state, migration, fake)


# Django's command makes its executor under this name, and offers no other way to choose it.
django_migrate.MigrationExecutor = AtomicExecutor  # type: ignore[attr-defined]


class MigrateSchema(django_migrate.Command):
    """Django's migrate, which works on the connection's schema, and counts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.applied = 0
        self.current = ""

    def run(self, **options: Any) -> bool:
        """Migrate with options of Django's; whether ``check_unapplied`` has found something."""
        try:
            self.execute(**{**DJANGO_OPTIONS, **options, **_FIXED}, database=current_server())
        except SystemExit:  # Django's answer to --check
            return True
        return False

    def migration_progress_callback(
        self, action: str, migration: Any = None, fake: bool = False
    ) -> None:
        if action in ("apply_start", "unapply_start"):
            self.current = str(migration)
        elif action in ("apply_success", "unapply_success"):
            self.applied += 1
            self.current = ""
        super().migration_progress_callback(action, migration, fake)
