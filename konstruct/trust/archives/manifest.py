"""The manifest of an archive: what it holds, and digests by which it is known to be whole."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from konstruct.trust.archives.kinds import KINDS
from memory.archive import SQLiteManager
from tenants.exceptions import KonstructError

# 2: tool calls, escalations and identities.
FORMAT = 2
TABLES = """
CREATE TABLE manifest (document TEXT NOT NULL) STRICT;
CREATE TABLE exported (
    kind TEXT NOT NULL, position INTEGER NOT NULL, row TEXT NOT NULL, PRIMARY KEY (kind, position)
) STRICT, WITHOUT ROWID;
"""
# What is searched offline, besides what is imported again.
OFFLINE = {
    "offline_conversations": (
        "SELECT id, title, created_at, updated_at, metadata FROM conversations ORDER BY id"
    ),
    "offline_messages": (
        "SELECT id, conversation_id, role, content, timestamp, embedding_id FROM messages"
        " ORDER BY position"
    ),
    "offline_vectors": (
        "SELECT e.id, e.model_version, hex(v.embedding) FROM embeddings AS e"
        " JOIN vectors AS v ON v.rowid = e.number ORDER BY e.number"
    ),
}


class ArchiveRefused(KonstructError):
    """The file cannot be imported; nothing was changed."""


@dataclass(frozen=True)
class Manifest:
    """What stands in the file about the file."""

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
        parts = [[kind.name, self.sha256[kind.name]] for kind in KINDS if kind.since <= self.format]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def text(self) -> str:
        """As it stands in the file."""
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)


def digest_of(rows: Iterable[str]) -> tuple[int, str]:
    """How many rows there are, and a SHA-256 over them in their order."""
    digest, count = hashlib.sha256(), 0
    for row in rows:
        digest.update(row.encode() + b"\n")
        count += 1
    return count, digest.hexdigest()


def rows_of(file: SQLiteManager, kind: str) -> Iterable[str]:
    """The rows of a kind as they stand in the file, one after the other."""
    with file.snapshot() as connection:
        if kind in OFFLINE:
            for row in connection.execute(OFFLINE[kind]):
                yield json.dumps(row, ensure_ascii=False)
        else:
            for (row,) in connection.execute(
                "SELECT row FROM exported WHERE kind = ? ORDER BY position", (kind,)
            ):
                yield row


def read_manifest(path: Path) -> Manifest:
    """The manifest of a file that is whole and that this program can import.

    Raises:
        ArchiveRefused: it is no export, of a later version, or was changed since it was made.
        ArchiveError: it is no archive, or damaged.
    """
    if not path.is_file():
        raise ArchiveRefused(f"{path} is not a file: give the path of an archive")
    with SQLiteManager(path) as file:
        file.verify()
        manifest = _manifest(file, path)
        for kind in manifest.sha256:
            found = digest_of(rows_of(file, kind))
            if found != (manifest.counts[kind], manifest.sha256[kind]):
                raise ArchiveRefused(
                    f"{path} was changed since it was exported: its {kind} have another digest"
                    " than its manifest says"
                )
    return manifest


def _manifest(file: SQLiteManager, path: Path) -> Manifest:
    if not file.rows("SELECT 1 FROM sqlite_schema WHERE name = 'manifest'"):
        raise ArchiveRefused(f"{path} is an archive, but no export of a tenant's memory")
    try:
        document: dict[str, Any] = json.loads(file.rows("SELECT document FROM manifest")[0][0])
        if document["format"] > FORMAT:
            raise ArchiveRefused(
                f"{path} has format {document['format']}; this program knows up to {FORMAT}:"
                " update Konstruct to import it"
            )
        manifest = Manifest(**document)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ArchiveRefused(f"{path} has a manifest that cannot be read: {error}") from error
    kinds = {*(kind.name for kind in KINDS if kind.since <= manifest.format), *OFFLINE}
    if not (manifest.counts.keys() == manifest.sha256.keys() == kinds):
        raise ArchiveRefused(f"{path} has a manifest that cannot be read: it names other kinds")
    return manifest
