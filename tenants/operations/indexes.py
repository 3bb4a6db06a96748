"""Migration operations that build and drop indexes concurrently, and can be interrupted.

Django's operations of the same names fail when they are run again: the index exists, or is gone.
A migration with such an operation is no transaction, so an interrupted one is run again from its
start. These operations look for an existing index first. An interrupted build leaves an invalid
index; it is dropped and built again.

In a transaction they build and drop without CONCURRENTLY, which Postgres does not allow there: a
tenant's schema is created in one transaction, which cannot block another session.
"""

from typing import Any

from django.contrib.postgres import operations

from tenants.operations.policies import TableOperation

_IS_VALID = """
    SELECT i.indisvalid
    FROM pg_index AS i
    JOIN pg_class AS c ON c.oid = i.indexrelid
    JOIN pg_class AS t ON t.oid = i.indrelid
    JOIN pg_namespace AS n ON n.oid = t.relnamespace
    WHERE n.nspname = %s AND t.relname = %s AND c.relname = %s
"""


class AddIndexConcurrently(operations.AddIndexConcurrently):
    """Django's `AddIndexConcurrently`, which can be run again."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            _build(schema_editor, model, self.index)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        model = from_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            _drop(schema_editor, model, self.index)


class RemoveIndexConcurrently(operations.RemoveIndexConcurrently):
    """Django's `RemoveIndexConcurrently`, which can be run again."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        model = from_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            state = from_state.models[app_label, self.model_name_lower]
            _drop(schema_editor, model, state.get_index_by_name(self.name))

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            state = to_state.models[app_label, self.model_name_lower]
            _build(schema_editor, model, state.get_index_by_name(self.name))


class DropIndex(TableOperation):
    """Drop an index that no model of Konstruct declares, such as one of Django's, if it exists."""

    def __init__(self, table: str, name: str, columns: str) -> None:
        """Name the index, and the columns with which it is built again in a downgrade."""
        super().__init__(table)
        self.name = name
        self.columns = columns

    def forwards_sql(self, table: str) -> list[str]:
        return [f'DROP INDEX IF EXISTS {table.partition(".")[0]}."{self.name}"']

    def backwards_sql(self, table: str) -> list[str]:
        return [f'CREATE INDEX IF NOT EXISTS "{self.name}" ON {table} ({self.columns})']

    def describe(self) -> str:
        return f"Drop index {self.name} of {self.table}"


def _build(schema_editor: Any, model: Any, index: Any) -> None:
    valid = _is_valid(schema_editor, model, index)
    if valid:
        return
    if valid is False:
        _drop(schema_editor, model, index)
    concurrently = not schema_editor.connection.in_atomic_block
    schema_editor.add_index(model, index, concurrently=concurrently)


def _drop(schema_editor: Any, model: Any, index: Any) -> None:
    # It says IF EXISTS, and drops what an earlier DROP INDEX CONCURRENTLY began to drop.
    concurrently = not schema_editor.connection.in_atomic_block
    schema_editor.remove_index(model, index, concurrently=concurrently)


def _is_valid(schema_editor: Any, model: Any, index: Any) -> bool | None:
    """Return whether the index is valid; None if there is none, or if SQL is only collected."""
    if schema_editor.collect_sql:
        return None
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        cursor.execute(_IS_VALID, [connection.schema_name, model._meta.db_table, index.name])
        row = cursor.fetchone()
    return None if row is None else bool(row[0])
