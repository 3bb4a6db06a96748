"""Operations and introspection of Django's backend: bound values, and the schema's own tables."""

from collections.abc import Sequence
from typing import Any, Final

import django.db.backends.postgresql.base  # noqa: F401  (Django 6.1: base before introspection)
import psycopg
from django.db.backends.postgresql.introspection import DatabaseIntrospection
from django.db.backends.postgresql.operations import DatabaseOperations

# What the protocol has room for in one message.
MAX_VALUES: Final = 2**16 - 1


class TenantOperations(DatabaseOperations):
    """Divides what has too many values for a message, and tells a log of queries what was sent."""

    def bulk_batch_size(self, fields: Sequence[Any], objs: Sequence[Any]) -> int:
        """How many objects one statement may have, with these fields of each."""
        return min(len(objs), MAX_VALUES // max(len(fields), 1))

    def last_executed_query(self, cursor: Any, sql: str, params: Any) -> str:
        """The statement with its values, which are sent apart from it.

        Without them where they cannot be sent at all: then the statement's own error counts.
        """
        try:
            return str(self.compose_sql(sql, params))
        except psycopg.Error:
            return str(sql)


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
