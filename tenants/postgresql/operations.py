"""Operations and introspection of the backend: values per message, and own tables only."""

from collections.abc import Sequence
from typing import Any, Final

import django.db.backends.postgresql.base  # noqa: F401  (Django 6.1: base before introspection)
from django.db.backends.postgresql.introspection import DatabaseIntrospection
from django.db.backends.postgresql.operations import DatabaseOperations

# The largest number of values in one message of the protocol.
MAX_VALUES: Final = 2**16 - 1


class TenantOperations(DatabaseOperations):
    """Splits statements with too many values."""

    def bulk_batch_size(self, fields: Sequence[Any], objs: Sequence[Any]) -> int:
        """Return how many objects with these fields one statement may have."""
        return min(len(objs), MAX_VALUES // max(len(fields), 1))


class OwnSchemaIntrospection(DatabaseIntrospection):
    """Lists the tables of a tenant's own schema, without those of public.

    Otherwise a table that a tenant lacks would count as existing if public has it.
    """

    connection: Any  # our DatabaseWrapper, which imports this module

    def get_table_list(self, cursor: Any) -> Any:
        include_public = self.connection.include_public_schema
        self.connection.include_public_schema = False
        try:
            return super().get_table_list(cursor)
        finally:
            self.connection.include_public_schema = include_public
