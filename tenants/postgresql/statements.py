"""The statements that the application may send, and those that run in no transaction."""

import re
from typing import Any, Final

from psycopg.errors import InsufficientPrivilege

# The beginnings of statements that the application sends. Others are refused, because Postgres
# allows them to every role: changing the session, ending the transaction, dropping granted objects
# (DROP OWNED), changing the role's settings and password. EXPLAIN reveals the frequency of a value
# from the statistics of any table.
_ALLOWED: Final = re.compile(
    r"[\s(]*(SELECT|WITH|INSERT|UPDATE|DELETE|MERGE|VALUES|TABLE|SHOW|SAVEPOINT|RELEASE"
    r"|ROLLBACK\s+TO|SET\s+CONSTRAINTS)\b",
    re.IGNORECASE,
)
# The owner's statements that Postgres refuses in a transaction.
OUTSIDE_TRANSACTIONS: Final = re.compile(
    r"\s*(VACUUM|((CREATE|DROP)(\s+UNIQUE)?\s+INDEX|REINDEX\s+\w+)\s+CONCURRENTLY|REFRESH"
    r"|ALTER\s+SYSTEM|(CREATE|DROP)\s+DATABASE)\b",
    re.IGNORECASE,
)


def refuse_unless_allowed(statement: str, params: Any) -> None:
    """Refuse statements that the application does not send.

    Without values the driver uses the simple protocol, in which a message can have several
    statements, so that a semicolon is allowed at its end only.

    Raises:
        InsufficientPrivilege: it is another kind of statement, or several ones.
    """
    if not _ALLOWED.match(statement):
        raise InsufficientPrivilege(
            f"permission denied for {statement.strip()[:20]!r}: no statement of the application"
            " changes the session, its transaction or a role"
        )
    if not params and ";" in statement.rstrip("; \n"):
        raise InsufficientPrivilege(
            "permission denied for several statements in one: send each by itself, and texts with"
            " a semicolon as values"
        )
