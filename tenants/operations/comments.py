"""A migration operation that sets the comments of tables and columns in the database."""

from collections.abc import Mapping
from typing import Any

from django.db import router
from django.db.migrations.operations.base import Operation

# Columns that many tables have, with fields without a help text.
COMMON = {
    "id": "Id of the row.",
    "tenant_id": "The tenant whose row this is.",
    "embedding": "Vector of the text, by the model that embedding_model names.",
}


class CommentOnTables(Operation):
    """Comment the tables of an app's models, and each of their columns with its help text.

    One operation for all tables of an app. Django's own `db_comment` would need an AlterField for
    each column, each of which renders the models anew, for each tenant: seconds instead of
    milliseconds. A later column gets its comment from another operation of this kind.
    """

    reduces_to_sql = True
    reversible = True

    def __init__(self, tables: Mapping[str, str]) -> None:
        self.tables = dict(tables)

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return self.__class__.__name__, [self.tables], {}

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Nothing: Django's models do not change."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        connection = schema_editor.connection
        if not router.allow_migrate(connection.alias, app_label):
            return
        quote, text = connection.ops.quote_name, schema_editor.quote_value
        statements = []
        for name, comment in self.tables.items():
            options = to_state.apps.get_model(app_label, name)._meta
            table = f"{quote(connection.schema_name)}.{quote(options.db_table)}"
            statements.append(f"COMMENT ON TABLE {table} IS {text(comment)}")
            for field in options.local_concrete_fields:
                said = str(field.help_text) or COMMON.get(field.column) or str(field.verbose_name)
                column = f"{table}.{quote(field.column)}"
                statements.append(f"COMMENT ON COLUMN {column} IS {text(said)}")
        schema_editor.execute(";\n".join(statements), params=None)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Nothing: older code ignores comments."""

    def describe(self) -> str:
        return f"Comment on {len(self.tables)} tables"
