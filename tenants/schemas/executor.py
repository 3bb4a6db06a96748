"""Django's migrate command and its executor, for the current schema of the connection."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.core.management.commands import migrate as django_migrate
from django.db import transaction
from django.db.migrations.executor import MigrationExecutor

from tenants.context import current_server, execute

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
# Options with a fixed value.
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
    """Limit how long a migration in the block waits for a lock.

    A migration without a transaction has no limit: CREATE INDEX CONCURRENTLY waits for the end of
    other transactions, and no session waits for it.

    Args:
        duration: an interval of Postgres, such as "2s".
    """
    token = _lock_timeout.set(duration)
    try:
        yield
    finally:
        _lock_timeout.reset(token)


class AtomicExecutor(MigrationExecutor):
    """Django's executor, but it records a migration in the transaction that applies it.

    Django records a migration after the transaction if SQL was deferred to its end, such as foreign
    keys. A process that is killed in between would apply the migration a second time.
    """

    def apply_migration(
        self, state: Any, migration: Any, fake: bool = False, fake_initial: bool = False
    ) -> Any:
        with self._transaction_of(migration):
            return super().apply_migration(state, migration, fake, fake_initial)

    def unapply_migration(self, state: Any, migration: Any, fake: bool = False) -> Any:
        with self._transaction_of(migration):
            return super().unapply_migration(state, migration, fake)

    @contextmanager
    def _transaction_of(self, migration: Any) -> Iterator[None]:
        if not migration.atomic:
            yield
            return
        with transaction.atomic(using=self.connection.alias):
            if duration := _lock_timeout.get():
                execute(f"SET LOCAL lock_timeout = '{duration}'")
            yield


# Django's command makes its executor under this name, and offers no other way to choose it.
django_migrate.MigrationExecutor = AtomicExecutor  # type: ignore[attr-defined]


class MigrateSchema(django_migrate.Command):
    """Django's migrate command for the schema of the connection. It counts migrations."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.applied = 0
        self.current = ""

    def run(self, **options: Any) -> bool:
        """Run the command with Django's options. Return whether --check found migrations."""
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
