"""Imports an archive: all of it or nothing. Importing it again changes nothing.

Each row is checked when it is read: its shape here, its values by Postgres' constraints.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Set
from pathlib import Path
from typing import Any, Final

import apsw
from django.db import DatabaseError, models

from konstruct.orchestrator.models import Agent, AgentVersion
from konstruct.privacy.archive import exporting
from memory.conversations import transcript
from memory.exceptions import CheckpointRefused
from memory.facts.rows import write_attributes
from memory.models import MemoryEntry, Message
from tenants import transaction
from tenants.audit.people import hold_people
from tenants.context import connection, execute, tenant_connection, tenant_scope
from tenants.models import Tenant

Say = Callable[[str, int, int], None]
_USERS: Final = """
    SELECT DISTINCT row ->> 'user_id' FROM exported
    WHERE json_valid(row) AND json_type(row, '$.user_id') = 'text'
"""
# Postgres cannot make JSON of more than 2**28 bytes, of a row or of the rows of a statement.
BATCH_ROWS: Final = 500
BATCH_LENGTH: Final = 2**24
# Kinds with values that LangGraph has encoded.
ENCODED: Final = frozenset({"checkpoint_blobs", "checkpoint_writes"})
# Columns in archives from before 0.1.0.
REMOVED: Final = frozenset({"ring_at"})
# Postgres' format of bytes; Postgres would read other formats too.
_BYTES: Final = re.compile(r"\\x(?:[0-9a-f]{2})*")
# Columns of a table, and whether an insert can give a value.
_COLUMNS: Final = """
    SELECT attname, attgenerated = '' AND attidentity <> 'a' FROM pg_attribute
    WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped
"""


def import_memory(
    tenant: Tenant,
    path: Path,
    *,
    expected_digest: str = "",
    say: Say = lambda kind, new, rows: None,
) -> exporting.Manifest:
    """Import an archive into a tenant, all of it or nothing.

    Existing rows are not changed. If one differs from the archive, nothing is imported.

    Args:
        expected_digest: the digest that `export_memory` returned; refuses any other archive.
        say: called with each kind, the number of its new rows, and the number of all.

    Returns:
        The manifest of the archive.

    Raises:
        ArchiveRefused: the file, or a part of it, cannot be imported.
        ArchiveError: the file is no archive, damaged, or of a later version.
    """
    with exporting.open_archive(path) as (file, manifest):
        if expected_digest and manifest.digest != expected_digest:
            raise exporting.ArchiveRefused(
                f"{path} is another archive: its digest is {manifest.digest}"
            )
        with tenant_scope(tenant.id), transaction.atomic():
            # All at once: two imports that add people one by one could wait for each other.
            hold_people(user_id for (user_id,) in file.execute(_USERS))
            new_messages: set[str] = set()
            for kind in exporting.kinds():
                new = 0
                for items in batches_of(file, kind, manifest):
                    if kind.export.with_new_messages:
                        items = [item for item in items if item["message_id"] in new_messages]
                    new += _import(kind, items, new_messages)
                say(kind.name, new, manifest.counts.get(kind.name, 0))
            _check_foreign_keys()
    return manifest


def batches_of(
    file: apsw.Connection, kind: exporting.Kind, manifest: exporting.Manifest
) -> Iterator[list[dict[str, Any]]]:
    """Read the rows of a kind, in batches for one statement.

    Raises:
        ArchiveRefused: a row is no object, has other fields than the first one, or would build an
            object of a class that is not allowed; or the rows are not those of the manifest, which
            is known at the end: the caller must roll back.
    """
    batch: list[dict[str, Any]] = []
    length = 0
    digest = hashlib.sha256()
    check = _check_encoded() if kind.name in ENCODED else None
    if kind.table == AgentVersion._meta.db_table:
        check = _check_version
    fields: Set[str] = frozenset()
    for number, row in enumerate(exporting.rows_of(file, kind.name)):
        try:
            item = json.loads(row)
        except (ValueError, RecursionError) as error:
            raise _row_refusal(kind, number, f"is not JSON ({error})") from error
        if not isinstance(item, dict):
            raise _row_refusal(kind, number, "is no JSON object")
        fields = fields or item.keys()
        if item.keys() != fields:
            raise _row_refusal(kind, number, "has other fields than the row before it")
        if missing := set(kind.export.key) - fields:
            raise _row_refusal(kind, number, f"has no {', '.join(sorted(missing))}")
        if check and (reason := check(item)):
            raise _row_refusal(kind, number, reason)
        if len(batch) == BATCH_ROWS or length + len(row) > BATCH_LENGTH:
            yield batch
            batch, length = [], 0
        digest.update(row.encode() + b"\n")
        batch.append(item)
        length += len(row)
    exporting.check_digest(file, manifest, kind.name, digest.hexdigest())
    yield batch


def _check_version(item: dict[str, Any]) -> str:
    settings = item.get("settings")
    if not isinstance(settings, dict):
        return "has settings that are not a JSON object"
    texts = (field.name for field in Agent._meta.fields if isinstance(field, models.TextField))
    wrong = sorted(name for name in texts if not isinstance(settings.get(name, ""), str))
    return f"has settings that are no text: {', '.join(wrong)}" if wrong else ""


def _check_encoded() -> Callable[[dict[str, Any]], str]:
    # Imported here: LangGraph takes half a second and 40 MB of each process.
    from memory.context.checkpoints import allowed_classes, check_stored_value

    allowed = allowed_classes()

    def check(item: dict[str, Any]) -> str:
        type_, blob = item.get("type"), item.get("blob")
        if not isinstance(type_, str) or not isinstance(blob, str | None):
            return "has no encoding and value"
        if not _BYTES.fullmatch(blob or "\\x"):
            return "has a value that is not written in hexadecimal"
        try:
            check_stored_value(type_, bytes.fromhex((blob or "")[2:]), allowed)
        except CheckpointRefused as error:
            return f"(thread {item['thread_id']!r}) {error}"
        return ""

    return check


def _row_refusal(kind: exporting.Kind, number: int, reason: str) -> exporting.ArchiveRefused:
    return exporting.ArchiveRefused(f"its {kind.name} cannot be imported: row {number} {reason}")


def _import(kind: exporting.Kind, items: list[dict[str, Any]], new_messages: set[str]) -> int:
    """Import rows of a kind; return the number of new rows."""
    if not items:
        return 0
    try:
        with connection.cursor() as cursor:
            if kind.export.insert:
                counts = []
                for statement in kind.export.insert:
                    cursor.execute(statement, {"rows": json.dumps(items)})
                    counts.append(int(cursor.rowcount))
                return counts[0]
            new = [key for key, *_ in _insert(cursor, kind, items)]
    except DatabaseError as error:
        reason = str(error).splitlines()[0]
        raise exporting.ArchiveRefused(f"its {kind.name} cannot be imported: {reason}") from error
    if kind.table == Message._meta.db_table:
        new_messages.update(new)
        written = Message.objects.filter(pk__in=new)
        transcript.write_attributes(written.filter(metadata__isnull=False))
        transcript.record_names(
            written.exclude(name="").only("user_id", "role", "name", "created_at")
        )
    elif kind.table == MemoryEntry._meta.db_table:
        for fact in MemoryEntry.objects.filter(pk__in=new):
            write_attributes(fact)
    return len(new)


def _insert(cursor: Any, kind: exporting.Kind, items: list[dict[str, Any]]) -> set[tuple[str, ...]]:
    """Insert new rows; refuse existing rows that differ. Return the keys of the new rows."""
    table = f"{kind.schema or tenant_connection().schema_name}.{kind.table}"
    columns = _columns(cursor, kind, table, items[0])
    names = ", ".join(f'"{name}"' for name in columns)
    cursor.execute(
        f"INSERT INTO {table} ({names})"
        f" SELECT {names} FROM jsonb_populate_recordset(NULL::{table}, %s::jsonb)"
        f" ON CONFLICT DO NOTHING RETURNING {', '.join(f'{key}::text' for key in kind.export.key)}",
        [json.dumps(items)],
    )
    new = set(cursor.fetchall())
    if len(new) < len(items):
        _refuse_others(cursor, kind, table, items)
    return new


def _refuse_others(
    cursor: Any, kind: exporting.Kind, table: str, items: list[dict[str, Any]]
) -> None:
    """Raise ArchiveRefused if an existing row differs, or has the same unique value."""
    if kind.export.is_mutable or kind.export.with_new_messages:
        compared = ", ".join(f"'{key}'" for key in kind.export.key)
    else:
        compared = ", ".join(f"'{name}'" for name in items[0])
    keys = " AND ".join(f"existing.{key} = wanted.{key}" for key in kind.export.key)
    cursor.execute(
        "SELECT given FROM jsonb_array_elements(%s::jsonb) AS given,"
        f" jsonb_populate_record(NULL::{table}, given) AS wanted"
        f" WHERE NOT EXISTS (SELECT FROM {table} AS existing WHERE {keys} AND NOT EXISTS ("
        f"  SELECT FROM unnest(ARRAY[{compared}]) AS name"
        "   WHERE to_jsonb(existing) -> name IS DISTINCT FROM given -> name)) LIMIT 1",
        [json.dumps(items)],
    )
    if found := cursor.fetchone():
        item = found[0] if isinstance(found[0], dict) else json.loads(found[0])
        which = {key: item[key] for key in kind.export.key}
        raise exporting.ArchiveRefused(
            f"its {kind.name} cannot be imported: {which} stands for something else in this tenant,"
            " or what is unique in it (a name, an idempotency key) is taken"
        )


def _columns(cursor: Any, kind: exporting.Kind, table: str, item: dict[str, Any]) -> list[str]:
    cursor.execute(_COLUMNS, [table])
    known: dict[str, bool] = dict(cursor.fetchall())
    if unknown := item.keys() - known - REMOVED:
        raise exporting.ArchiveRefused(
            f"its {kind.name} have {', '.join(sorted(unknown))}, which this version does not know:"
            " update Konstruct, and migrate, to import it"
        )
    return [name for name, is_given in known.items() if is_given and name in item]


def _check_foreign_keys() -> None:
    """Check foreign keys now, not at the commit."""
    try:
        execute("SET CONSTRAINTS ALL IMMEDIATE")
        execute("SET CONSTRAINTS ALL DEFERRED")
    except DatabaseError as error:
        raise exporting.ArchiveRefused(
            f"it does not agree with itself: {str(error).splitlines()[0]}"
        ) from error
