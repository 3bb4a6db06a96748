"""Importing: validated first, then all of it or nothing. Importing again changes nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.db import DatabaseError

from konstruct.privacy.archive.kinds import CLEARS, INDEX, KINDS, MESSAGES, Kind
from konstruct.privacy.archive.manifest import ArchiveRefused, Manifest, opened
from konstruct.privacy.archive.rows import batches_of, refuse_unsafe_rows
from memory.archive import UntrustedArchive
from memory.conversations.metadata import write_attributes as write_message_attributes
from memory.facts.versions import write_attributes
from memory.models import MemoryEntry, Message
from tenants import transaction
from tenants.context import connection, tenant_connection, tenant_scope
from tenants.models import Tenant

Say = Callable[[str, int, int], None]
_COLUMNS = """
    SELECT attname FROM pg_attribute
    WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped
      AND attgenerated = '' AND attidentity <> 'a'
"""
_ALL_COLUMNS = """
    SELECT attname FROM pg_attribute
    WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped
"""
# A message that waits is put back with its place in the outbox, once: with the message.
WITH_NEW_MESSAGES = frozenset({"pending_embeddings", "pending_replies"})
# What people change, or what goes on: the same row though it says something else by now.
CHANGING = frozenset({"agents", "tool_calls", "escalations", "identities"})

_INDEX = """
    INSERT INTO memory_indexedmessage (
        message_number, scope_id, message_id, session, created_at, subject, by_user, words,
        has_time, asks, lexemes
    )
    SELECT message.number, indexed.scope_id, indexed.message_id, indexed.session,
           indexed.created_at, indexed.subject, indexed.by_user, indexed.words, indexed.has_time,
           coalesce(indexed.asks, false), coalesce(indexed.lexemes, 0)
    FROM jsonb_populate_recordset(NULL::memory_indexedmessage, %(rows)s::jsonb) AS indexed
    JOIN memory_message AS message ON message.id = indexed.message_id
    ON CONFLICT DO NOTHING
"""
_POSTINGS = """
    INSERT INTO memory_posting (scope_id, h, message_number, w, own)
    SELECT (item ->> 'scope_id')::bigint, (posting ->> 0)::bigint, message.number,
           (posting ->> 1)::real, (posting ->> 2)::boolean
    FROM jsonb_array_elements(%(rows)s::jsonb) AS item
    JOIN memory_message AS message ON message.id = (item ->> 'message_id')::uuid,
    jsonb_array_elements(coalesce(nullif(item -> 'postings', 'null'), '[]')) AS posting
    ON CONFLICT DO NOTHING
"""
_CLEARS = """
    INSERT INTO memory_windowclear (agent_id, user_id, created_at, last_number)
    SELECT cleared.agent_id, cleared.user_id, cleared.created_at, coalesce(message.number, 0)
    FROM jsonb_to_recordset(%(rows)s::jsonb)
        AS cleared (agent_id uuid, user_id text, created_at timestamptz, up_to uuid)
    LEFT JOIN memory_message AS message ON message.id = cleared.up_to
    WHERE NOT EXISTS (
        -- The last one that is written counts, so that none comes after a later one.
        SELECT FROM memory_windowclear AS standing
        WHERE (standing.agent_id, standing.user_id) = (cleared.agent_id, cleared.user_id)
          AND standing.created_at >= cleared.created_at
    )
    ORDER BY cleared.created_at
"""


def import_memory(
    tenant: Tenant,
    path: Path,
    *,
    expected_digest: str = "",
    say: Say = lambda kind, new, rows: None,
) -> Manifest:
    """Put an archive into a tenant, all of it or nothing; the archive's manifest.

    What stands already stays; where it says something else than the archive, nothing is imported.

    Args:
        expected_digest: what `export_memory` has told, to be sure that it is that very archive.
        say: called with the kind, how many of its rows are new, and how many there are.

    Raises:
        ArchiveRefused: the file, or something in it, cannot be imported.
        ArchiveError: the file is no archive, damaged, or of a later version.
    """
    with opened(path) as (file, manifest):
        if expected_digest and manifest.digest != expected_digest:
            raise ArchiveRefused(f"{path} is another archive: its digest is {manifest.digest}")
        refuse_unsafe_rows(file)
        with tenant_scope(tenant.id), transaction.atomic():
            _import_all(file, manifest, say)
    return manifest


def _import_all(file: UntrustedArchive, manifest: Manifest, say: Say) -> None:
    new_messages: set[str] = set()
    for kind in KINDS:
        new = 0
        for items in batches_of(file, kind, manifest):
            if kind.name in WITH_NEW_MESSAGES:
                items = [item for item in items if item["message_id"] in new_messages]
            new += _import(kind, items, new_messages)
        say(kind.name, new, manifest.counts.get(kind.name, 0))
    _check_foreign_keys()


def _import(kind: Kind, items: list[dict[str, Any]], new_messages: set[str]) -> int:
    if not items:
        return 0
    try:
        with connection.cursor() as cursor:
            if kind is INDEX:
                return _insert_index(cursor, items)
            if kind is CLEARS:
                cursor.execute(_CLEARS, {"rows": json.dumps(items)})
                return int(cursor.rowcount)
            new = _insert(cursor, kind, items)
    except DatabaseError as error:
        reason = str(error).splitlines()[0]
        raise ArchiveRefused(f"its {kind.name} cannot be imported: {reason}") from error
    if kind is MESSAGES:
        new_messages |= {key for (key,) in new}
        said = Message.objects.filter(pk__in=[key for (key,) in new], metadata__isnull=False)
        write_message_attributes(said)
    if kind.name == "facts":
        for fact in MemoryEntry.objects.filter(pk__in=[key for (key,) in new]):
            write_attributes(fact)
    return len(new)


def _insert(cursor: Any, kind: Kind, items: list[dict[str, Any]]) -> set[tuple[str, ...]]:
    """Insert rows that are not there; refuse those that are there and say something else."""
    table = f"{kind.schema or tenant_connection().schema_name}.{kind.table}"
    columns = _columns(cursor, kind, table, items[0])
    names = ", ".join(f'"{name}"' for name in columns)
    cursor.execute(
        f"INSERT INTO {table} ({names})"
        f" SELECT {names} FROM jsonb_populate_recordset(NULL::{table}, %s::jsonb)"
        f" ON CONFLICT DO NOTHING RETURNING {', '.join(f'{key}::text' for key in kind.key)}",
        [json.dumps(items)],
    )
    new = set(cursor.fetchall())
    if len(new) < len(items):
        _refuse_others(cursor, kind, table, items)
    return new


def _refuse_others(cursor: Any, kind: Kind, table: str, items: list[dict[str, Any]]) -> None:
    """Raise if a row is not there as the archive has it: an id or a name is taken."""
    if kind.name in CHANGING | WITH_NEW_MESSAGES:
        compared = ", ".join(f"'{key}'" for key in kind.key)
    else:
        compared = ", ".join(f"'{name}'" for name in items[0])
    keys = " AND ".join(f"standing.{key} = wanted.{key}" for key in kind.key)
    cursor.execute(
        "SELECT told FROM jsonb_array_elements(%s::jsonb) AS told,"
        f" jsonb_populate_record(NULL::{table}, told) AS wanted"
        f" WHERE NOT EXISTS (SELECT FROM {table} AS standing WHERE {keys} AND NOT EXISTS ("
        f"  SELECT FROM unnest(ARRAY[{compared}]) AS name"
        "   WHERE to_jsonb(standing) -> name IS DISTINCT FROM told -> name)) LIMIT 1",
        [json.dumps(items)],
    )
    if found := cursor.fetchone():
        item = found[0] if isinstance(found[0], dict) else json.loads(found[0])
        which = {key: item[key] for key in kind.key}
        raise ArchiveRefused(
            f"its {kind.name} cannot be imported: {which} stands for something else in this tenant,"
            " or what is unique in it (a name, an idempotency key) is taken"
        )


def _columns(cursor: Any, kind: Kind, table: str, item: dict[str, Any]) -> list[str]:
    cursor.execute(_ALL_COLUMNS, [table])
    known = {name for (name,) in cursor.fetchall()}
    if unknown := item.keys() - known:
        raise ArchiveRefused(
            f"its {kind.name} have {', '.join(sorted(unknown))}, which this version does not know:"
            " update Konstruct, and migrate, to import it"
        )
    cursor.execute(_COLUMNS, [table])
    return [name for (name,) in cursor.fetchall() if name in item]


def _insert_index(cursor: Any, items: list[dict[str, Any]]) -> int:
    parameters = {"rows": json.dumps(items)}
    cursor.execute(_INDEX, parameters)
    new = int(cursor.rowcount)
    cursor.execute(_POSTINGS, parameters)
    return new


def _check_foreign_keys() -> None:
    """Find now what Postgres would find at the commit."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")
    except DatabaseError as error:
        raise ArchiveRefused(
            f"it does not agree with itself: {str(error).splitlines()[0]}"
        ) from error
