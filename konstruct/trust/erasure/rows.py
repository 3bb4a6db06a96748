"""Removing a person's rows, in the transaction of the caller, and telling how many there were."""

from typing import Any

from django.db import connection

from konstruct.trust.erasure.person import Person
from konstruct.trust.erasure.tables import EXEMPT, RULES, Rule
from tenants.context import tenant_connection
from tenants.exceptions import KonstructError

_TABLES = """
    SELECT relname FROM pg_class
    WHERE relkind IN ('r', 'p') AND relnamespace = %s::regnamespace ORDER BY relname
"""
# The digest is of the ids in their order, so that whoever has a list of them can compare it.
_REMOVE = """
    WITH gone AS (DELETE FROM {table} WHERE {where} RETURNING {key}::text AS key)
    SELECT count(*), encode(sha256(convert_to(string_agg(key, ',' ORDER BY key), 'UTF8')), 'hex')
    FROM gone
"""


class UnknownTable(KonstructError):
    """There is a table of which nobody has said what an erasure does with it."""


def tables_of_tenant() -> list[str]:
    """Every table of the schema that we are in, whoever made it."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLES, [tenant_connection().schema_name])
        return [name for (name,) in cursor.fetchall()]


def refuse_unknown_tables() -> None:
    """Raise UnknownTable if an erasure could miss something."""
    unknown = set(tables_of_tenant()) - {rule.table for rule in RULES} - EXEMPT.keys()
    if unknown:
        raise UnknownTable(
            f"nobody has said what an erasure does with {', '.join(sorted(unknown))}:"
            " add it to konstruct/trust/erasure/tables.py"
        )


def remove_rows(person: Person) -> dict[str, dict[str, Any]]:
    """Remove or change every row that is the person's; how many, by table, and a digest of ids."""
    done: dict[str, dict[str, Any]] = {}
    with connection.cursor() as cursor:
        for rule in RULES:
            rows, digest = _apply(cursor, rule, person.parameters())
            if rows:
                done[rule.table] = {"changed" if rule.change else "removed": rows}
                if digest:
                    done[rule.table]["sha256_of_ids"] = digest
    return done


def _apply(cursor: Any, rule: Rule, parameters: dict[str, Any]) -> tuple[int, str | None]:
    table = f"{tenant_connection().schema_name}.{rule.table}"
    if rule.key:
        cursor.execute(_REMOVE.format(table=table, where=rule.where, key=rule.key), parameters)
        count, digest = cursor.fetchone()
        return count, digest
    if rule.change:
        cursor.execute(
            f"UPDATE {table} SET {rule.change} WHERE ({rule.where}) AND NOT ({rule.changed})",
            parameters,
        )
    else:
        cursor.execute(f"DELETE FROM {table} WHERE {rule.where}", parameters)
    return cursor.rowcount, None


def sweep_up() -> None:
    """Let Postgres forget what removed rows held: in their pages, and in its statistics."""
    for rule in RULES:
        with connection.cursor() as cursor:
            cursor.execute(f"VACUUM (ANALYZE) {tenant_connection().schema_name}.{rule.table}")
