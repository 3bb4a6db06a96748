"""The manifest of an archive: counts and digests of its content."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import apsw

from memory.archive.database import raise_archive_errors, version_of
from tenants.exceptions import KonstructError
from tenants.personal_data import OF_MESSAGES_OF_USER, OF_USER, Export, PersonalData, exports

# The only supported format. Earlier formats were never released.
FORMAT = 3
NO_ROWS = hashlib.sha256().hexdigest()
TABLES = """
CREATE TABLE manifest (document TEXT NOT NULL) STRICT;
CREATE TABLE exported (
    kind TEXT NOT NULL, position INTEGER NOT NULL, row TEXT NOT NULL, PRIMARY KEY (kind, position)
) STRICT, WITHOUT ROWID;
"""
# Postgres cannot make JSON of a row that is longer than 2**28 bytes.
MAX_VALUE_BYTES = 2**28 + 2**20
# Steps of SQLite's virtual machine for one file. Reading a row of ten bytes takes fewer than 200.
MIN_STEPS = 20_000_000
STEPS_PER_BYTE = 60
_STEPS_BETWEEN_CHECKS = 100_000
_CONFIGURATION = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_VIEW: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION: 0,
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of rows in an archive: JSON from Postgres, without the tenant."""

    table: str
    schema: str
    """Where the table is; empty for the tenant's schema."""
    export: Export
    select: str
    """Gives one JSON object for each row, in order."""

    @property
    def name(self) -> str:
        """The name of the kind in archives."""
        return self.export.kind


def kinds() -> list[Kind]:
    """Return the kinds of an archive, in the order of the import."""
    result = []
    for table, (declaration, export) in exports().items():
        data = declaration if isinstance(declaration, PersonalData) else PersonalData()
        where = export.where or (OF_USER if data.subject else OF_MESSAGES_OF_USER)
        without = ", ".join(f"'{column}'" for column in ("tenant_id", *export.without))
        select = export.select or (
            f"SELECT to_jsonb(exported) - ARRAY[{without}]::text[] FROM {table} AS exported"
            f" WHERE {where} ORDER BY {export.order or ', '.join(export.key)}"
        )
        result.append(Kind(table, data.schema, export, select))
    return result


class ArchiveRefused(KonstructError):
    """The file cannot be imported; nothing was changed."""


@dataclass(frozen=True)
class Manifest:
    """The description of an archive in the archive itself."""

    format: int
    exported_at: str
    tenant_id: str
    tenant: str
    user_id: str | None
    embedding_model: str
    counts: dict[str, int]
    sha256: dict[str, str]

    @property
    def digest(self) -> str:
        """SHA-256 of all rows. It does not depend on the time of the export."""
        parts = [
            [kind.name, self.sha256[kind.name]] for kind in kinds() if kind.name in self.sha256
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def text(self) -> str:
        """Return the JSON for the file."""
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)


def digest_of(rows: Iterable[str]) -> tuple[int, str]:
    """Return the number of rows, and a SHA-256 over them in their order."""
    digest, count = hashlib.sha256(), 0
    for row in rows:
        digest.update(row.encode() + b"\n")
        count += 1
    return count, digest.hexdigest()


def rows_of(connection: apsw.Connection, kind: str) -> Iterator[str]:
    """Yield the rows of a kind, as text."""
    for (row,) in connection.execute(
        "SELECT row FROM exported WHERE kind = ? ORDER BY position", (kind,)
    ):
        yield row


@contextmanager
def open_archive(path: Path) -> Iterator[tuple[apsw.Connection, Manifest]]:
    """Open an archive for reading. Its rows are not compared with the manifest.

    The file may come from an attacker. Only the tables `manifest` and `exported` are read, which
    must have the schema of an archive. Code in the file is not run, nothing is written, and the
    work is limited by the size of the file.

    Raises:
        ArchiveRefused: it is no export, or of another version.
        ArchiveError: it is no archive, or damaged.
    """
    if not path.is_file():
        raise ArchiveRefused(f"{path} is not a file: give the path of an archive")
    for suffix in ("-wal", "-journal"):
        companion = Path(f"{path}{suffix}")
        if companion.exists() and companion.stat().st_size:
            raise ArchiveRefused(
                f"{companion.name} beside {path} holds part of its data: open the archive once with"
                " MemoryManager where you trust it, and close it"
            )
    with raise_archive_errors(path):
        connection = apsw.Connection(
            f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1",
            flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
        )
        try:
            _restrict(connection, path.stat().st_size)
            _check_tables(connection, path)
            yield connection, _manifest(connection, path)
        finally:
            connection.close()


def check_digest(connection: apsw.Connection, manifest: Manifest, kind: str, digest: str) -> None:
    """Raise ArchiveRefused if the digest differs from the one in the manifest."""
    if digest != manifest.sha256.get(kind, NO_ROWS):
        raise ArchiveRefused(
            f"{connection.filename} was changed since it was exported: its {kind} have another"
            " digest than its manifest"
        )


def read_manifest(path: Path) -> Manifest:
    """Return the manifest of a file after checking all rows; raises as `open_archive`."""
    with open_archive(path) as (connection, manifest):
        for kind in kinds():
            _, digest = digest_of(rows_of(connection, kind.name))
            check_digest(connection, manifest, kind.name, digest)
    return manifest


def _restrict(connection: apsw.Connection, size: int) -> None:
    """Disable code in the file, and limit the work and memory for reading it."""
    for option, value in _CONFIGURATION.items():
        connection.config(option, value)
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    connection.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
    connection.pragma("query_only", True)
    connection.pragma("cell_size_check", True)
    connection.pragma("mmap_size", 0)
    checks = count((MIN_STEPS + STEPS_PER_BYTE * size) // _STEPS_BETWEEN_CHECKS, -1)
    connection.set_progress_handler(lambda: next(checks) < 0, _STEPS_BETWEEN_CHECKS)


def _check_tables(connection: apsw.Connection, path: Path) -> None:
    if not version_of(connection, path):
        raise ArchiveRefused(f"{path} is empty: give the path of an archive")
    # SQLite executes the SQL of a schema entry, whatever its type is.
    statements = [
        " ".join(str(sql).split())
        for (sql,) in connection.execute(
            "SELECT sql FROM sqlite_schema WHERE name IN ('manifest', 'exported') LIMIT 3"
        )
    ]
    if sorted(statements) != sorted(
        " ".join(sql.split()) for sql in TABLES.split(";") if sql.strip()
    ):
        raise ArchiveRefused(f"{path} is an archive, but no export of a tenant's memory")
    is_cut = path.stat().st_size < connection.pragma("page_count") * connection.pragma("page_size")
    results = ["the file is cut off"] if is_cut else []
    for table in ("manifest", "exported"):
        # The first error ends it: a page may be repeated in a cycle.
        results.append(str(connection.execute(f"PRAGMA integrity_check({table})").get))
    if set(results) != {"ok"}:
        raise ArchiveRefused(f"{path} is damaged ({results[0]}): restore it from a copy")


def _manifest(connection: apsw.Connection, path: Path) -> Manifest:
    rows = connection.execute("SELECT document FROM manifest LIMIT 2").fetchall()
    try:
        [(text,)] = rows
        document: dict[str, Any] = json.loads(str(text))
        if document["format"] != FORMAT:
            raise ArchiveRefused(
                f"{path} has format {document['format']!r:.20}; this program reads {FORMAT}"
            )
        manifest = Manifest(**document)
        UUID(manifest.tenant_id)
        datetime.fromisoformat(manifest.exported_at)
        texts = (manifest.tenant, manifest.embedding_model, *manifest.sha256.values())
        counts = manifest.counts.values()
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ArchiveRefused(f"{path} has a manifest that cannot be read: {error}") from error
    is_text = all(isinstance(text, str) and text.isprintable() for text in texts)
    if not is_text or not all(type(number) is int for number in counts):
        raise ArchiveRefused(f"{path} has a manifest that cannot be read: a value has another type")
    return manifest
