"""The statements that the application may send, and Django's placeholders as $1, $2, …"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.errors import InsufficientPrivilege

_PLACEHOLDER = re.compile(r"%(?:\((\w+)\)s|(.?))", re.DOTALL)


Numbered = tuple[bytes, tuple[str, ...] | int]


def number_placeholders(query: str) -> Numbered:
    """Return the statement with $1, $2, … for its values, and their ordered names or number.

    Raises:
        psycopg.ProgrammingError: a % begins no placeholder, or some are named and others not.
    """
    return _numbered_cached(query) if len(query) <= _CACHED_LENGTH else _numbered(query)


def _numbered(query: str) -> Numbered:
    names: dict[str, int] = {}
    unnamed = 0

    def number(found: re.Match[str]) -> str:
        nonlocal unnamed
        if name := found[1]:
            return f"${names.setdefault(name, len(names) + 1)}"
        if found[2] == "%":
            return "%"
        if found[2] != "s":
            raise psycopg.ProgrammingError(
                f"only '%s', '%(name)s' and '%%' are allowed in a statement, not {found[0]!r}"
            )
        unnamed += 1
        return f"${unnamed}"

    sql = _PLACEHOLDER.sub(number, query).encode()
    if names and unnamed:
        raise psycopg.ProgrammingError("named and unnamed values cannot be mixed in a statement")
    return sql, tuple(names) if names else unnamed


# Both admins send 454 different statements of 620 characters on average, the longest one of 9,813.
# Longer ones hold the values of many rows and are rarely repeated.
_CACHED_LENGTH = 10_000
_numbered_cached = lru_cache(maxsize=1024)(_numbered)


def ordered_values(wanted: tuple[str, ...] | int, params: Any) -> Sequence[Any]:
    """Return the values in the order of their numbers.

    Raises:
        psycopg.ProgrammingError: there are more or fewer than the statement has.
    """
    if isinstance(wanted, int):
        if isinstance(params, Mapping) and wanted:
            raise psycopg.ProgrammingError("the statement's values have no names")
        if not isinstance(params, Mapping) and len(params) != wanted:
            raise psycopg.ProgrammingError(
                f"the statement has {wanted} placeholders, but {len(params)} values were given"
            )
        return params if wanted else ()
    if not isinstance(params, Mapping):
        raise psycopg.ProgrammingError("the statement's values have names: give a mapping")
    try:
        return [params[name] for name in wanted]
    except KeyError as missing:
        raise psycopg.ProgrammingError(f"the value {missing} is missing") from None


# The beginnings of statements that the application sends: those that read and write rows, or belong
# to a transaction, and those that Postgres refuses to roles without ownership. Others are refused,
# because Postgres allows them to every role: changing the session, locking tables, dropping granted
# objects (DROP OWNED), changing the role's settings and password. EXPLAIN reveals the frequency of
# a value from the statistics of any table. A cursor WITH HOLD would keep rows in the session.
_APPLICATION_STATEMENT = re.compile(
    r"[\s(]*(SELECT|WITH|INSERT|UPDATE|DELETE|MERGE|VALUES|TABLE|SHOW|BEGIN|COMMIT|ROLLBACK"
    r"|SAVEPOINT|RELEASE|SET\s+(CONSTRAINTS|LOCAL|TRANSACTION)|FETCH|CLOSE"
    r'|DECLARE\s+"[^"]+"\s+NO\s+SCROLL\s+CURSOR\s+FOR'
    r"|CREATE|DROP\s+(FUNCTION|INDEX|POLICY|SCHEMA|TABLE|VIEW)|TRUNCATE|GRANT|REVOKE"
    r"|ALTER\s+TABLE)\b",
    re.IGNORECASE,
)


def refuse_unknown_statement(statement: str) -> None:
    """Refuse statements that the application does not send.

    Raises:
        InsufficientPrivilege: it is another kind of statement.
    """
    if not _APPLICATION_STATEMENT.match(statement):
        raise InsufficientPrivilege(
            f"permission denied for {statement.strip()[:20]!r}: no statement of the application"
            " changes the session or a role"
        )
