"""What kinds of statements the application may send."""

import re

from psycopg.errors import InsufficientPrivilege

# How a statement of the application begins: what reads and writes rows, what belongs to a
# transaction, and what Postgres refuses to who owns nothing. Nothing else is sent, for Postgres
# lets everybody change the session, lock tables, drop what one was granted (DROP OWNED) or change
# the role's own settings and password. EXPLAIN tells from the statistics of any table how often a
# value is in it. A cursor WITH HOLD would keep a tenant's rows in the session.
_OF_THE_APPLICATION = re.compile(
    r"[\s(]*(SELECT|WITH|INSERT|UPDATE|DELETE|MERGE|VALUES|TABLE|SHOW|BEGIN|COMMIT|ROLLBACK"
    r"|SAVEPOINT|RELEASE|SET\s+(CONSTRAINTS|LOCAL|TRANSACTION)|FETCH|CLOSE"
    r'|DECLARE\s+"[^"]+"\s+NO\s+SCROLL\s+CURSOR\s+FOR'
    r"|CREATE|DROP\s+(FUNCTION|INDEX|POLICY|SCHEMA|TABLE|VIEW)|TRUNCATE|GRANT|REVOKE"
    r"|ALTER\s+TABLE)\b",
    re.IGNORECASE,
)


def refuse_unless_of_the_application(statement: str) -> None:
    """Refuse what no statement of the application does.

    Raises:
        InsufficientPrivilege: it is another kind of statement.
    """
    if not _OF_THE_APPLICATION.match(statement):
        raise InsufficientPrivilege(
            f"permission denied for {statement.strip()[:20]!r}: no statement of the application"
            " changes the session or a role"
        )
