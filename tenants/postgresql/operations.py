"""Operations of Django's backend, for values that Postgres binds."""

from collections.abc import Sequence
from typing import Any, Final

import psycopg
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
