"""Operations of Django's backend, for statements that were sent prepared."""

from typing import Any

import psycopg
from django.db.backends.postgresql.operations import DatabaseOperations

from tenants.postgresql.prepared import TenantPreparedCursor


class TenantOperations(DatabaseOperations):
    """Tells a log of queries what was sent."""

    def last_executed_query(self, cursor: Any, sql: str, params: Any) -> str:
        """The statement with its values, which psycopg does not keep of one that was sent prepared.

        Without them where they cannot be sent at all: then the statement's own error counts.
        """
        if not isinstance(cursor, TenantPreparedCursor):
            kept: str | None = super().last_executed_query(cursor, sql, params)
            if kept is not None:
                return kept
        try:
            return str(self.compose_sql(sql, params))
        except psycopg.Error:
            return sql
