"""The SQL of all migrations, recorded once and sent to each tenant's schema in one message.

Django migrates an empty schema, in a transaction that is rolled back. The statements that the
schema editor, `post_migrate` and row-level security send are stored in the public schema, together
with a digest of the code. They name the empty schema and its tenant.
"""

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import django
import psycopg
from django.apps import apps
from django.conf import settings
from django.db import transaction
from django.db.migrations import Migration
from django.db.migrations.operations import RenameModel, RunPython, SeparateDatabaseAndState
from django.db.migrations.operations.base import Operation

from tenants.context import execute, public_scope, tenant_connection
from tenants.exceptions import KonstructError
from tenants.locking import schema_lock
from tenants.models import SchemaState
from tenants.naming import schema_name_of
from tenants.operations.policies import protect_sql
from tenants.schemas.executor import MigrateSchema, lock_timeout
from tenants.schemas.migration_state import (
    digest_of,
    known_migrations,
    migration_folders,
    state_of,
)
from tenants.schemas.rls_enforcement import rls_statements

# The id of the schema that is migrated for the recording. No tenant has it.
RECORDED_ID: Final = UUID("5e5f3c1a-7d0b-4c57-9a1e-2f7d3b8c6e40")
RECORDED_SCHEMA: Final = schema_name_of(RECORDED_ID)

# Operations of these packages have the same effect in every schema of the same state. That is not
# known of other operations, and of those that run Python.
_SQL_OPERATIONS: Final = (
    "django.db.migrations.operations",
    "django.contrib.postgres.operations",
    "tenants.operations",
)
_READS = re.compile(r"(SELECT|SHOW|EXPLAIN|SAVEPOINT|RELEASE)\b", re.IGNORECASE)
_WRITES_ROWS = re.compile(r"(INSERT|UPDATE|DELETE|MERGE|COPY|TRUNCATE|WITH)\b", re.IGNORECASE)
_RECORDS_MIGRATION = re.compile(r'INSERT INTO "django_migrations"', re.IGNORECASE)


class RecordingFailed(KonstructError):
    """The SQL of a migration could not be recorded."""


@dataclass(unsafe_hash=True)
class Step:
    """A migration: the statements that it sent to an empty schema, and where they are replayed."""

    app: str
    name: str
    sql: list[str] = field(default_factory=list, hash=False)
    is_sql: bool = True  # all of it is SQL, the same in a schema with rows
    makes_rows: bool = False  # its Python may have written rows, in an empty schema too

    @property
    def key(self) -> tuple[str, str]:
        return self.app, self.name

    def can_be_replayed(self, *, empty: bool) -> bool:
        """Return whether the statements have the effect of the migration in another schema.

        Python that writes rows may write other rows for each tenant.

        Args:
            empty: whether the schema has no rows.
        """
        return self.is_sql or (empty and not self.makes_rows)


@dataclass
class Recording:
    """The statements that bring an empty schema, or one of an earlier state, up to date."""

    head: list[str] = field(default_factory=list)  # before the first migration
    steps: list[Step] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)  # rows of post_migrate, into an empty schema
    protection: list[str] = field(
        default_factory=list
    )  # what protects tables that nothing else did

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> "Recording":
        return cls(**{**kept, "steps": [Step(**step) for step in kept["steps"]]})

    @property
    def upkeep(self) -> str:
        """A digest of the statements that every migrate repeats: permissions, roles, policies."""
        return digest_of([*self.tail, *self.protection, *protect_sql(f"{RECORDED_SCHEMA}.any")])

    @property
    def state(self) -> str:
        """The value of `Tenant.migrated_to` for a schema that is up to date."""
        return state_of(known_migrations(), upkeep=self.upkeep)


def statements_of(steps: Sequence[Step]) -> list[str]:
    """Return the statements of the steps, and the INSERT that records them as applied."""
    rows = ", ".join(f"({_quote(step.app)}, {_quote(step.name)}, now())" for step in steps)
    noted = f"INSERT INTO django_migrations (app, name, applied) VALUES {rows}"  # noqa: S608
    return [*(statement for step in steps for statement in step.sql), noted]


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def script_for(schema_name: str, tenant_id: UUID, statements: Sequence[str]) -> str:
    """Return the statements as one message for another schema and its tenant."""
    script = ";\n".join(statements)
    return script.replace(RECORDED_SCHEMA, schema_name).replace(str(RECORDED_ID), str(tenant_id))


@cache
def get_recording(*, keep: bool = True) -> Recording:
    """Return the recording of this code. The first process makes it. Needs the owner's role.

    Args:
        keep: whether to store a new recording in the public schema.

    Raises:
        RecordingFailed: a migration cannot be recorded.
    """
    with public_scope(), schema_lock(RECORDED_SCHEMA):
        code = digest_of_code()
        kept = SchemaState.objects.filter(code=code).values_list("recording", flat=True).first()
        if kept is not None:
            return Recording.from_json(kept)
        made = record()
        if not keep:
            return made
        with transaction.atomic():
            SchemaState.objects.exclude(code="").update(code="", recording=None)
            SchemaState.objects.update_or_create(
                name=made.state,
                defaults={
                    "migrations": sorted(known_migrations()),
                    "code": code,
                    "recording": asdict(made),
                },
            )
        return made


@cache
def digest_of_code() -> str:
    """Return a digest of everything that a recording depends on: migrations, settings and code."""
    said = (django.__version__, psycopg.__version__, settings.INSTALLED_APPS, settings.TENANT_APPS)
    digest = blake2b(repr(said).encode(), digest_size=16)
    roots = {config.name.partition(".")[0] for config in apps.get_app_configs()}
    ours = {folder for root in roots if (folder := Path(settings.BASE_DIR, root)).is_dir()}
    for folder in sorted(ours.union(migration_folders().values())):
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def record() -> Recording:
    """Migrate an empty schema in a transaction that is rolled back, and return the statements.

    Raises:
        RecordingFailed: a migration cannot be recorded, or failed.
    """
    connection = tenant_connection()
    recorder = _Recorder()
    command = _RecordedMigrate(recorder)
    try:
        with transaction.atomic(using=connection.alias), lock_timeout(""):
            execute("SET CONSTRAINTS ALL IMMEDIATE")
            execute(f"CREATE SCHEMA {RECORDED_SCHEMA}")
            connection.set_schema(RECORDED_SCHEMA)
            with connection.execute_wrapper(recorder):
                command.run()
            recorder.made.protection = rls_statements(connection)
            transaction.set_rollback(True, using=connection.alias)
    except Exception as error:
        where = f"{command.current}: " if command.current else ""
        raise RecordingFailed(f"{where}{error}") from error
    finally:
        connection.set_schema_to_public()
    return recorder.made


class _Recorder:
    """A wrapper of `execute` that keeps the statements that change something."""

    def __init__(self) -> None:
        self.made = Recording()
        self._sent = self.made.head

    def __call__(
        self,
        execute: Callable[..., Any],
        sql: str,
        params: Any,
        many: bool,
        context: dict[str, Any],
    ) -> Any:
        result = execute(sql, params, many, context)
        sql = sql.strip()
        if _READS.match(sql.lstrip("( \n")) or _RECORDS_MIGRATION.match(sql):
            return result
        if many or "ROLLBACK" in sql[:20].upper():
            raise RecordingFailed(f"a migration sends {sql[:60]!r}, which cannot be replayed")
        if params is not None:
            driver = tenant_connection().connection
            sql = psycopg.ClientCursor(driver).mogrify(sql, params)
        self._sent.append(sql.rstrip(";"))
        return result

    def begin(self, migration: Migration) -> None:
        step = Step(migration.app_label, migration.name, is_sql=_is_sql(migration))
        self.made.steps.append(step)
        self._sent = step.sql

    def end(self) -> None:
        step = self.made.steps[-1]
        step.makes_rows = not step.is_sql and any(map(_WRITES_ROWS.match, step.sql))
        self._sent = self.made.tail


class _RecordedMigrate(MigrateSchema):
    """Django's migrate command, which calls a recorder at the start and end of each migration."""

    def __init__(self, recorder: _Recorder) -> None:
        super().__init__(stdout=io.StringIO(), stderr=io.StringIO(), no_color=True)
        self._recorder = recorder

    def migration_progress_callback(
        self, action: str, migration: Any = None, fake: bool = False
    ) -> None:
        if action == "apply_start":
            self._recorder.begin(migration)
        elif action == "apply_success":
            self._recorder.end()
        super().migration_progress_callback(action, migration, fake)


def _is_sql(migration: Migration) -> bool:
    return bool(migration.atomic and not migration.replaces) and all(
        map(_is_sql_operation, migration.operations)
    )


def _is_sql_operation(operation: Operation) -> bool:
    if isinstance(operation, SeparateDatabaseAndState):
        return all(map(_is_sql_operation, operation.database_operations))
    # Django renames the content type together with the model, in Python.
    is_python = isinstance(operation, RunPython | RenameModel)
    return not is_python and type(operation).__module__.startswith(_SQL_OPERATIONS)
