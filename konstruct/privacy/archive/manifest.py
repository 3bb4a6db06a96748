"""The manifest of an archive: what it holds, and digests by which it is known to be whole."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from memory.archive import IncompleteArchive, SQLiteManager, UntrustedArchive
from memory.archive.untrusted import stored_vectors
from tenants.exceptions import KonstructError
from tenants.personal_data import OF_MESSAGES_OF_USER, OF_USER, Export, PersonalData, exports

# 2: tool calls, escalations and identities. 3: items of conversations.
FORMAT = 3
TABLES = """
CREATE TABLE manifest (document TEXT NOT NULL) STRICT;
CREATE TABLE exported (
    kind TEXT NOT NULL, position INTEGER NOT NULL, row TEXT NOT NULL, PRIMARY KEY (kind, position)
) STRICT, WITHOUT ROWID;
"""
# What is searched offline, besides what is imported again. Vectors are read by `stored_vectors`.
OFFLINE_VECTORS = "offline_vectors"
OFFLINE = {
    "offline_conversations": (
        "SELECT id, title, created_at, updated_at, metadata FROM conversations ORDER BY id"
    ),
    "offline_messages": (
        "SELECT id, conversation_id, role, content, timestamp, embedding_id FROM messages"
        " ORDER BY position"
    ),
    OFFLINE_VECTORS: "",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of rows in an archive: JSON that Postgres makes of them, without the tenant."""

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
    """Return what an archive holds, in the order in which it is imported."""
    found = []
    for table, (declaration, export) in exports().items():
        of = declaration if isinstance(declaration, PersonalData) else PersonalData()
        where = export.where or (OF_USER if of.subject else OF_MESSAGES_OF_USER)
        without = ", ".join(f"'{column}'" for column in ("tenant_id", *export.without))
        select = export.select or (
            f"SELECT to_jsonb(exported) - ARRAY[{without}]::text[] FROM {table} AS exported"
            f" WHERE {where} ORDER BY {export.order or ', '.join(export.key)}"
        )
        found.append(Kind(table, of.schema, export, select))
    return found


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
        """One SHA-256 of all that is imported: equal for equal memories, whenever exported."""
        parts = [
            [kind.name, self.sha256[kind.name]]
            for kind in kinds()
            if kind.export.since <= self.format
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def check(self) -> None:
        """Raise TypeError or ValueError unless all of it is as an export writes it."""
        texts = (self.tenant_id, self.tenant, self.exported_at, self.embedding_model)
        if type(self.format) is not int or self.format < 1:
            raise ValueError(f"its format is {self.format!r:.80}")
        if not all(isinstance(text, str) and text.isprintable() for text in texts):
            raise ValueError("it names tenant, time or model by something else than text")
        if not isinstance(self.user_id, str | None):
            raise TypeError(f"its user_id is {self.user_id!r:.80}")
        UUID(self.tenant_id)
        datetime.fromisoformat(self.exported_at)
        for values, kind in ((self.counts, int), (self.sha256, str)):
            if not isinstance(values, dict) or not all(
                type(value) is kind for value in values.values()
            ):
                raise ValueError("its counts or digests are none")

    def text(self) -> str:
        """Return the JSON that the file holds."""
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)


def digest_of(rows: Iterable[str]) -> tuple[int, str]:
    """Return the number of rows, and a SHA-256 over them in their order."""
    digest, count = hashlib.sha256(), 0
    for row in rows:
        digest.update(row.encode() + b"\n")
        count += 1
    return count, digest.hexdigest()


def rows_of(file: SQLiteManager | UntrustedArchive, kind: str) -> Iterator[str]:
    """Yield the rows of a kind, as text."""
    with file.snapshot() as connection:
        if kind == OFFLINE_VECTORS:
            for id, model_version, vector in stored_vectors(connection):
                yield json.dumps([id, model_version, vector.hex().upper()], ensure_ascii=False)
        elif kind in OFFLINE:
            for row in connection.execute(OFFLINE[kind]):
                yield json.dumps(row, ensure_ascii=False)
        else:
            for (row,) in connection.execute(
                "SELECT row FROM exported WHERE kind = ? ORDER BY position", (kind,)
            ):
                yield row


@contextmanager
def opened(path: Path) -> Iterator[tuple[UntrustedArchive, Manifest]]:
    """Open an export that this program can import. Its rows are not compared with the manifest.

    Raises:
        ArchiveRefused: it is no export, or of a later version.
        ArchiveError: it is no archive, damaged, or holds more than an archive does.
    """
    if not path.is_file():
        raise ArchiveRefused(f"{path} is not a file: give the path of an archive")
    try:
        file = UntrustedArchive(path, exactly=TABLES)
    except IncompleteArchive as error:
        raise ArchiveRefused(
            f"{path} is an archive, but no export of a tenant's memory: {error}"
        ) from error
    with file:
        yield file, _manifest(file, path)


def check_digests(file: UntrustedArchive, manifest: Manifest, names: Iterable[str]) -> None:
    """Raise ArchiveRefused if rows of one of these kinds were changed since the export."""
    for name in names:
        if digest_of(rows_of(file, name)) != (manifest.counts[name], manifest.sha256[name]):
            raise changed(file.path, name)


def changed(path: Path, kind: str) -> ArchiveRefused:
    """That a kind of rows is not what the manifest says."""
    return ArchiveRefused(
        f"{path} was changed since it was exported: its {kind} have another digest than its"
        " manifest says"
    )


def read_manifest(path: Path) -> Manifest:
    """Return the manifest of a file whose rows are all as exported; raises as `opened`."""
    with opened(path) as (file, manifest):
        check_digests(file, manifest, manifest.sha256)
    return manifest


def _manifest(file: UntrustedArchive, path: Path) -> Manifest:
    rows = file.rows("SELECT document FROM manifest LIMIT 2")
    try:
        [(text,)] = rows
        document: dict[str, Any] = json.loads(text)
        if document["format"] > FORMAT:
            raise ArchiveRefused(
                f"{path} has format {document['format']!r:.20}; this program knows up to {FORMAT}:"
                " update Konstruct to import it"
            )
        manifest = Manifest(**document)
        manifest.check()
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ArchiveRefused(f"{path} has a manifest that cannot be read: {error}") from error
    names = {*(each.name for each in kinds() if each.export.since <= manifest.format), *OFFLINE}
    if not (manifest.counts.keys() == manifest.sha256.keys() == names):
        raise ArchiveRefused(f"{path} has a manifest that cannot be read: it names other kinds")
    return manifest
