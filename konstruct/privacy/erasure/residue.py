"""Looking whether anything of a person is left: exact values, in every table of the tenant."""

import json
import re
from typing import Any, Final

from konstruct.privacy.erasure.person import Person
from konstruct.privacy.erasure.stores.rows import tables_of_people, tables_of_tenant
from tenants.context import connection, tenant_connection

RECEIPTS = "audit_erasurerequest"
_COLUMNS = """
    SELECT relname, attname, format_type(atttypid, NULL) FROM pg_attribute
    JOIN pg_class ON pg_class.oid = attrelid
    WHERE relkind IN ('r', 'p') AND relnamespace = %s::regnamespace
      AND attnum > 0 AND NOT attisdropped
    ORDER BY relname, attnum
"""
TEXTS = ("text", "character varying")
JSON = ("jsonb", "json")
# Columns that hold a user's id, in whichever table.
_USER_COLUMNS: Final = ("user_id", "own_id", "from_user")
# Columns in which people write.
_WORDS: Final = ("content", "name", "note", "question", "reason", "result")
# JSON that is ours.
_NO_WORDS: Final = ("detail", "moved", "posted")
_STRINGS: Final = "'strict $.** ? (@.type() == \"string\")'"


def left_of(person: Person) -> dict[str, int]:
    """Rows that are the person's, by table: there must be none. Looked for by equality alone.

    By the names of columns, so that a table that came since is looked at too.
    """
    found = {}
    for table, columns in _tables().items():
        conditions = _are_theirs(columns)
        if table != RECEIPTS and conditions:
            count = _count(table, " OR ".join(conditions), person.parameters())
            if count:
                found[table] = count
    return found


def mentions_of(person: Person) -> dict[str, int]:
    """Rows of others in whose texts an id of the person stands as a word: for a human to judge.

    Texts that hold the id are found by a plain search first; few are left for the pattern.
    """
    found = {}
    ruled = tables_of_people()
    for table, columns in _tables().items():
        conditions = _mention(columns, len(person.user_ids))
        if table not in ruled or not conditions:
            continue
        others = ""
        if columns.get("user_id") in TEXTS:
            others = " AND (user_id IS NULL OR user_id <> ALL(%(users)s))"
        values: dict[str, Any] = {"users": list(person.user_ids)}
        for number, user_id in enumerate(person.user_ids):
            values |= {
                f"user{number}": user_id,
                f"in_json{number}": json.dumps(user_id, ensure_ascii=False)[1:-1],
                f"word{number}": as_word(user_id),
            }
        count = _count(table, f"({' OR '.join(conditions)}){others}", values)
        if count:
            found[table] = count
    return found


def as_word(user_id: str) -> str:
    """A regular expression of Postgres that finds the id as a word of its own."""
    return f"(^|[^[:alnum:]]){re.escape(user_id)}($|[^[:alnum:]])"


def _tables() -> dict[str, dict[str, str]]:
    """Kinds of columns by their names, by table."""
    tables: dict[str, dict[str, str]] = {table: {} for table in tables_of_tenant()}
    with connection.cursor() as cursor:
        cursor.execute(_COLUMNS, [tenant_connection().schema_name])
        for table, column, kind in cursor.fetchall():
            tables[table][column] = kind
    return tables


def _count(table: str, condition: str, values: dict[str, Any]) -> int:
    name = f"{tenant_connection().schema_name}.{table}"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {name} WHERE {condition}", values)
        return int(cursor.fetchone()[0])


def _are_theirs(columns: dict[str, str]) -> list[str]:
    agents = "%(agent)s::uuid IS NULL"
    if "agent_id" in columns:
        agents = f"({agents} OR agent_id = %(agent)s)"
    conditions = [
        f"({column} = ANY(%(users)s) AND {agents})"
        for column in _USER_COLUMNS
        if columns.get(column) in TEXTS
    ]
    if "scope_id" in columns:
        conditions.append("scope_id = ANY(%(scopes)s)")
    if "thread_id" in columns and "checkpoint_ns" in columns:
        conditions.append("thread_id = ANY(%(sessions)s)")
    return conditions


def _mention(columns: dict[str, str], users: int) -> list[str]:
    conditions = []
    for number in range(users):
        user, in_json, word = (f"%({name}{number})s" for name in ("user", "in_json", "word"))
        for column, kind in columns.items():
            if kind in TEXTS and column in _WORDS:
                conditions.append(f"(strpos({column}, {user}) > 0 AND {column} ~ {word})")
            elif kind in JSON and column not in _NO_WORDS:
                # What is said in it, and not what its parts are called.
                conditions.append(
                    f"(strpos({column}::text, {in_json}) > 0 AND EXISTS (SELECT FROM"
                    f" jsonb_path_query({column}::jsonb, {_STRINGS}) AS said"
                    f" WHERE said #>> '{{}}' ~ {word}))"
                )
            elif kind == "bytea":
                conditions.append(f"position(convert_to({user}, 'UTF8') in {column}) > 0")
    return conditions
