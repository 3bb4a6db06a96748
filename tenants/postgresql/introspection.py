"""Introspection that sees the tables of the current schema only."""

from typing import Any

import django.db.backends.postgresql.base  # noqa: F401  (Django 6.1: base before introspection)
from django.db.backends.postgresql.introspection import DatabaseIntrospection


class OwnSchemaIntrospection(DatabaseIntrospection):
    """Hides the public schema, which a tenant's search_path ends with.

    Otherwise a table that a tenant lacks would be taken for there if public has it.
    """

    connection: Any  # our DatabaseWrapper, which imports this module

    def get_table_list(self, cursor: Any) -> Any:
        with self.connection.own_schema_only():
            return super().get_table_list(cursor)

    def get_table_description(self, cursor: Any, table_name: str) -> Any:
        with self.connection.own_schema_only():
            return super().get_table_description(cursor, table_name)

    def get_sequences(self, cursor: Any, table_name: str, table_fields: Any = ()) -> Any:
        with self.connection.own_schema_only():
            return super().get_sequences(cursor, table_name, table_fields)

    def get_relations(self, cursor: Any, table_name: str) -> Any:
        with self.connection.own_schema_only():
            return super().get_relations(cursor, table_name)

    def get_constraints(self, cursor: Any, table_name: str) -> Any:
        with self.connection.own_schema_only():
            return super().get_constraints(cursor, table_name)
