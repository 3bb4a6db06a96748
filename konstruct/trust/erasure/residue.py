"""Looking for a person in every column of every table of the tenant, after they were erased."""

from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from konstruct.trust.erasure.person import Person
from konstruct.trust.erasure.rows import tables_of_tenant
from tenants.context import tenant_connection

RECEIPTS = "audit_erasurerequest"
_COLUMNS = """
    SELECT attname, format_type(atttypid, NULL) FROM pg_attribute
    WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
TEXTS = ("text", "character varying")
JSON = ("jsonb", "json")


@dataclass
class Residue:
    """What was found, as numbers of rows by table."""

    left: dict[str, int] = field(default_factory=dict)
    """Rows that are the person's, or name something that was: there must be none."""
    mentions: dict[str, int] = field(default_factory=dict)
    """Rows of others in whose texts the user's id stands as a word: for a human to judge."""


def residue_of(person: Person) -> Residue:
    """Scan everything; the receipts themselves are left out."""
    found = Residue()
    for table in tables_of_tenant():
        if table != RECEIPTS:
            left, mentions = _scan(table, person)
            if left:
                found.left[table] = left
            if mentions:
                found.mentions[table] = mentions
    return found


def _scan(table: str, person: Person) -> tuple[int, int]:
    name = f"{tenant_connection().schema_name}.{table}"
    with connection.cursor() as cursor:
        cursor.execute(_COLUMNS, [name])
        columns: dict[str, str] = dict(cursor.fetchall())
        theirs = " OR ".join(_is_theirs(columns)) or "false"
        mentioned = " OR ".join(_mentions(columns)) or "false"
        cursor.execute(
            f"SELECT count(*) FILTER (WHERE {theirs}),"
            f" count(*) FILTER (WHERE NOT coalesce({theirs}, false) AND ({mentioned})) FROM {name}",
            person.parameters(),
        )
        left, mentions = cursor.fetchone()
        return left, mentions


def _is_theirs(columns: dict[str, str]) -> list[str]:
    conditions: list[Any] = []
    if "user_id" in columns and columns["user_id"] in TEXTS:
        agents = "%(agent)s::uuid IS NULL"
        if "agent_id" in columns:
            agents = f"({agents} OR agent_id = %(agent)s)"
        conditions.append(f"(user_id = %(user)s AND {agents})")
    if "scope_id" in columns:
        conditions.append("scope_id = ANY(%(scopes)s)")
    for column, kind in columns.items():
        if column == "thread_id" and "checkpoint_ns" in columns:
            conditions.append("thread_id = ANY(%(threads)s)")
        elif kind == "uuid" or kind in TEXTS:
            conditions.append(f'"{column}"::text = ANY(%(ids)s)')
    return conditions


def _mentions(columns: dict[str, str]) -> list[str]:
    conditions = [
        f'"{column}"::text ~ %(word)s'
        for column, kind in columns.items()
        if kind in TEXTS or kind in JSON
    ]
    conditions += [
        f"position(convert_to(%(user)s, 'UTF8') in \"{column}\") > 0"
        for column, kind in columns.items()
        if kind == "bytea"
    ]
    return conditions
