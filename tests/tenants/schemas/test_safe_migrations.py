"""A migration of a released app neither rewrites nor locks a large table; old code continues.

The test reads the operations, and test_expand_and_contract.py the recorded statements. Models
created by the same migration are empty, so every operation on them is safe.
"""

from collections.abc import Iterable, Iterator

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently as DjangosAddIndex,
    RemoveIndexConcurrently,
)
from django.db import models
from django.db.migrations import (
    AddConstraint,
    AddField,
    AddIndex,
    AlterField,
    AlterModelTable,
    CreateModel,
    DeleteModel,
    RemoveField,
    RemoveIndex,
    RenameField,
    RenameModel,
    RunPython,
)
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.migration import Migration
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from tenants.operations import AddIndexConcurrently

CONTRACTS = (AlterModelTable, DeleteModel, RemoveField, RenameField, RenameModel)


def faults(app: str, migration: Migration, state: ProjectState) -> Iterator[str]:
    """Return the operations that are unsafe beside processes of the previous version.

    Args:
        state: of the models before the migration.
    """
    made = {
        operation.name_lower
        for operation in migration.operations
        if isinstance(operation, CreateModel)
    }
    for operation in migration.operations:
        model = str(getattr(operation, "model_name", getattr(operation, "name", ""))).lower()
        if model not in made and (fault := _fault(app, operation, migration, state)):
            yield f"{operation.describe()}: {fault}"
        operation.state_forwards(app, state)


def _fault(app: str, operation: Operation, migration: Migration, state: ProjectState) -> str:
    match operation:
        case AddField(field=models.GeneratedField()):
            return "a generated column rewrites the table"
        case AddField(field=field) if not (
            field.null or field.has_db_default() or field.many_to_many
        ):
            return "old code writes no value: it needs db_default or null"
        case AlterField():
            return _fault_of_change(app, operation, state)
        case AddIndexConcurrently() | RemoveIndexConcurrently():
            return "needs atomic = False" if migration.atomic else ""
        case DjangosAddIndex():
            return "cannot be run again: take it from tenants.operations"
        case AddIndex() | RemoveIndex():
            return "locks the table: take the operation from tenants.operations"
        case AddConstraintNotValid():
            return ""
        case AddConstraint(constraint=models.CheckConstraint()):
            return (
                "reads the table under a lock: AddConstraintNotValid, and ValidateConstraint later"
            )
        case RunPython():
            return "one statement or transaction for all rows: a job in batches"
        case operation if isinstance(operation, CONTRACTS):
            return "old code knows it: change the name in the code alone, or wait for a release"
    return ""


def _fault_of_change(app: str, operation: AlterField, state: ProjectState) -> str:
    before = state.models[app, operation.model_name_lower].fields[operation.name]
    types = [field.db_parameters(_connection())["type"] for field in (before, operation.field)]
    longer = all(isinstance(field, models.CharField) for field in (before, operation.field)) and (
        (operation.field.max_length or 0) >= (before.max_length or 0)
    )
    if types[0] != types[1] and not longer and not before.is_relation:
        return "another type rewrites the table"
    if before.null and not operation.field.null:
        return "NOT NULL reads the table under a lock"
    if before.has_db_default() and not operation.field.has_db_default():
        return "old code may write no value"
    return ""


def _connection():  # type: ignore[no-untyped-def]
    from django.db import connection

    return connection


def _migrations() -> Iterable[tuple[str, Migration, ProjectState]]:
    loader = MigrationLoader(None)
    labels = {
        apps.get_containing_app_config(f"{name}.x").label
        for name in ["tenants", *settings.TENANT_APPS]
        if not name.startswith("django.")
    }
    for app, name in sorted(loader.disk_migrations):
        migration = loader.disk_migrations[app, name]
        if app in labels and name != "0001_initial":
            parents = [key for key in migration.dependencies if key[1] != "__first__"]
            yield app, migration, loader.project_state(parents)


def test_no_migration_of_a_release_rewrites_or_locks_a_table() -> None:
    found = {
        f"{app}.{migration.name}": problems
        for app, migration, state in _migrations()
        if (problems := list(faults(app, migration, state)))
    }
    assert found == {}


TEXT = models.TextField()
COLUMN = ("message", "subject_line")


@pytest.mark.parametrize(
    ("operation", "is_safe"),
    [
        (AddField(*COLUMN, models.TextField(null=True)), True),
        (AddField(*COLUMN, models.TextField(db_default="")), True),
        (AddField(*COLUMN, models.TextField(default="")), False),
        (AddField(*COLUMN, models.GeneratedField(
            expression=models.F("name"), output_field=TEXT, db_persist=True)), False),
        (AlterField("message", "name", models.TextField(db_default="", help_text="Said.")), True),
        (AlterField("message", "name", models.TextField(default="")), False),
        (AlterField("message", "name", models.IntegerField(db_default=0)), False),
        (AlterField("message", "external_id", models.CharField(max_length=300, null=True)), True),
        (AlterField("message", "external_id", models.CharField(max_length=20, null=True)), False),
        (AlterField("message", "external_id", models.CharField(max_length=255)), False),
        (AddIndex("message", models.Index(fields=["name"], name="some")), False),
        (RemoveIndex("message", "message_scope"), False),
        (AddIndexConcurrently("message", models.Index(fields=["name"], name="some")), True),
        (DjangosAddIndex("message", models.Index(fields=["name"], name="some")), False),
        (AddConstraint("message", models.CheckConstraint(
            condition=models.Q(role="user"), name="some")), False),
        (AddConstraintNotValid("message", models.CheckConstraint(
            condition=models.Q(role="user"), name="some")), True),
        (RunPython(RunPython.noop), False),
        (RemoveField("message", "name"), False),
        (RenameField("message", "name", "speaker"), False),
        (RenameModel("Message", "Turn"), False),
        (DeleteModel("WindowClear"), False),
        (CreateModel("Note", [("id", models.BigAutoField(primary_key=True))]), True),
    ],
)  # fmt: skip
def test_safe_operations_are_accepted(operation: Operation, is_safe: bool) -> None:
    migration = Migration("0999_example", "memory")
    migration.operations = [operation]
    migration.atomic = not isinstance(operation, DjangosAddIndex)
    state = MigrationLoader(None).project_state()
    assert (list(faults("memory", migration, state)) == []) is is_safe


def test_an_index_that_is_built_concurrently_needs_a_migration_without_a_transaction() -> None:
    migration = Migration("0999_example", "memory")
    migration.operations = [
        AddIndexConcurrently("message", models.Index(fields=["name"], name="some"))
    ]
    (problems,) = faults("memory", migration, MigrationLoader(None).project_state())
    assert problems.endswith("needs atomic = False")
