"""Archives: their format, exports into them at one time, and opening them.

An archive is an SQLite file with a tenant's memory, or one user's. Its manifest has counts and
digests of its content.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote
from uuid import NAMESPACE_OID, UUID, uuid5

import apsw
import numpy as np
import pydantic
import pydantic.dataclasses
from psycopg import IsolationLevel

from memory.archive import SQLiteManager, VectorStore
from memory.archive.database import raise_archive_errors, version_of
from memory.embedding.embedder import model_version
from tenants import transaction
from tenants.context import connection, fetch_column, tenant_scope
from tenants.exceptions import KonstructError
from tenants.models import Tenant
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
Say = Callable[[str, int], None]
BATCH = 1000

# Threads without messages of another user, and those with a session of the user.
_THREADS = """
    SELECT thread_id FROM memory_message GROUP BY thread_id
    HAVING bool_and(user_id = %(user)s)
    UNION SELECT thread_id FROM checkpoints WHERE metadata ->> 'user_id' = %(user)s
"""
# One vector for each message: the mean of the vectors of its pieces, of the current model.
_OFFLINE = f"""
SELECT message.id::text, message.agent_id::text, message.user_id, message.thread_id,
       message.channel, message.role, message.content, message.created_at,
       (SELECT avg(piece.embedding)::real[] FROM memory_conversationembedding AS piece
        WHERE piece.message_id = message.id AND piece.embedding_model = %(model)s)
FROM memory_message AS message WHERE {OF_USER} ORDER BY message.number
"""


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


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it has characters that are not shown")
    return text


Printable = Annotated[str, pydantic.AfterValidator(_printable)]


@pydantic.dataclasses.dataclass(frozen=True, config={"strict": True, "extra": "forbid"})
class Manifest:
    """The description of an archive in the archive itself."""

    format: int
    exported_at: datetime
    tenant_id: UUID
    tenant: Printable
    user_id: str | None
    embedding_model: Printable
    counts: dict[str, int]
    sha256: dict[str, Printable]

    @property
    def digest(self) -> str:
        """SHA-256 of all rows. It does not depend on the time of the export."""
        parts = [
            [kind.name, self.sha256[kind.name]] for kind in kinds() if kind.name in self.sha256
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


MANIFEST: Final = pydantic.TypeAdapter(Manifest)


def digest_of(rows: Iterable[str]) -> tuple[int, str]:
    """Return the number of rows, and a SHA-256 over them in their order."""
    digest, count = hashlib.sha256(), 0
    for row in rows:
        digest.update(row.encode() + b"\n")
        count += 1
    return count, digest.hexdigest()


def rows_of(file: apsw.Connection, kind: str) -> Iterator[str]:
    """Yield the rows of a kind, as text."""
    for (row,) in file.execute(
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
        file = apsw.Connection(
            f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1",
            flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
        )
        try:
            _restrict(file, path.stat().st_size)
            _check_tables(file, path)
            yield file, _manifest(file, path)
        finally:
            file.close()


def check_digest(file: apsw.Connection, manifest: Manifest, kind: str, digest: str) -> None:
    """Raise ArchiveRefused if the digest differs from the one in the manifest."""
    if digest != manifest.sha256.get(kind, NO_ROWS):
        raise ArchiveRefused(
            f"{file.filename} was changed since it was exported: its {kind} have another"
            " digest than its manifest"
        )


def read_manifest(path: Path) -> Manifest:
    """Return the manifest of a file after checking all rows; raises as `open_archive`."""
    with open_archive(path) as (file, manifest):
        for kind in kinds():
            _, digest = digest_of(rows_of(file, kind.name))
            check_digest(file, manifest, kind.name, digest)
    return manifest


def _restrict(file: apsw.Connection, size: int) -> None:
    """Disable code in the file, and limit the work and memory for reading it."""
    for option, value in _CONFIGURATION.items():
        file.config(option, value)
    file.limit(apsw.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    file.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
    file.pragma("query_only", True)
    file.pragma("cell_size_check", True)
    file.pragma("mmap_size", 0)
    checks = count((MIN_STEPS + STEPS_PER_BYTE * size) // _STEPS_BETWEEN_CHECKS, -1)
    file.set_progress_handler(lambda: next(checks) < 0, _STEPS_BETWEEN_CHECKS)


def _check_tables(file: apsw.Connection, path: Path) -> None:
    if not version_of(file, path):
        raise ArchiveRefused(f"{path} is empty: give the path of an archive")
    # SQLite executes the SQL of a schema entry, whatever its type is.
    statements = [
        " ".join(str(sql).split())
        for (sql,) in file.execute(
            "SELECT sql FROM sqlite_schema WHERE name IN ('manifest', 'exported') LIMIT 3"
        )
    ]
    if sorted(statements) != sorted(
        " ".join(sql.split()) for sql in TABLES.split(";") if sql.strip()
    ):
        raise ArchiveRefused(f"{path} is an archive, but no export of a tenant's memory")
    is_cut = path.stat().st_size < file.pragma("page_count") * file.pragma("page_size")
    results = ["the file is cut off"] if is_cut else []
    for table in ("manifest", "exported"):
        # The first error ends it: a page may be repeated in a cycle.
        results.append(str(file.execute(f"PRAGMA integrity_check({table})").get))
    if set(results) != {"ok"}:
        raise ArchiveRefused(f"{path} is damaged ({results[0]}): restore it from a copy")


def _manifest(file: apsw.Connection, path: Path) -> Manifest:
    rows = file.execute("SELECT document FROM manifest LIMIT 2").fetchall()
    try:
        [(text,)] = rows
        manifest = MANIFEST.validate_json(str(text))
    except ValueError as error:
        raise ArchiveRefused(f"{path} has a manifest that cannot be read: {error}") from error
    if manifest.format != FORMAT:
        raise ArchiveRefused(f"{path} has format {manifest.format}; this program reads {FORMAT}")
    return manifest


# --- Exports --------------------------------------------------------------------------------------


class ExportFailed(KonstructError):
    """Nothing was exported."""


def export_memory(
    tenant: Tenant, path: Path, *, user_id: str | None = None, say: Say = lambda kind, rows: None
) -> Manifest:
    """Write a new file with the tenant's memory, or one user's.

    The file gets its name when it is complete.

    Args:
        user_id: the user; None exports all users.
        say: called with each kind and the number of its rows.

    Returns:
        The manifest of the file.

    Raises:
        ExportFailed: the file exists already, or there is no data about the user.
    """
    if path.exists():
        raise ExportFailed(f"{path} exists already: remove it, or give another name")
    draft = path.with_name(f"{path.name}.part")
    _remove(draft)
    try:
        with SQLiteManager(draft) as file, tenant_scope(tenant.id), _repeatable_read():
            manifest = _write(file, tenant, user_id, say)
        draft.rename(path)
    except BaseException:
        _remove(draft)
        raise
    return manifest


def _write(file: SQLiteManager, tenant: Tenant, user_id: str | None, say: Say) -> Manifest:
    parameters: dict[str, Any] = {"user": user_id, "threads": [], "model": model_version()}
    if user_id is not None:
        parameters["threads"] = fetch_column(_THREADS, parameters)
    vectors = VectorStore(file)
    with file.transaction() as sqlite:
        sqlite.execute(TABLES)
        for kind in kinds():
            written = 0
            for (row,) in _stream(kind.select, parameters):
                text = json.dumps(json.loads(row) if isinstance(row, str) else row, sort_keys=True)
                sqlite.execute("INSERT INTO exported VALUES (?, ?, ?)", (kind.name, written, text))
                written += 1
            say(kind.name, written)
        _write_offline(file, vectors, parameters)
        # Not the time of the export: the newest conversation is the one with the last message.
        sqlite.execute(
            "UPDATE conversations SET updated_at ="
            " (SELECT max(timestamp) FROM messages WHERE conversation_id = conversations.id)"
        )
        digests = {kind.name: digest_of(rows_of(sqlite, kind.name)) for kind in kinds()}
        manifest = Manifest(
            format=FORMAT,
            exported_at=datetime.now(UTC).replace(microsecond=0),
            tenant_id=tenant.id,
            tenant=tenant.slug,
            user_id=user_id,
            embedding_model=parameters["model"],
            counts={name: count for name, (count, _) in digests.items()},
            sha256={name: digest for name, (_, digest) in digests.items()},
        )
        if user_id is not None and not any(
            manifest.counts[name] for name in ("messages", "embeddings", "facts")
        ):
            raise ExportFailed(f"nothing is known of user {user_id!r}")
        sqlite.execute("INSERT INTO manifest VALUES (?)", (MANIFEST.dump_json(manifest).decode(),))
    return manifest


def _write_offline(file: SQLiteManager, vectors: VectorStore, parameters: dict[str, Any]) -> None:
    """Write the conversations, messages and vectors for searches with `MemoryManager`."""
    written = set()
    for row in _stream(_OFFLINE, parameters):
        message_id, agent_id, user_id, thread_id, channel, role, content, created_at, mean = row
        conversation = str(uuid5(NAMESPACE_OID, json.dumps([agent_id, user_id, thread_id])))
        if conversation not in written:
            written.add(conversation)
            file.create_conversation(
                thread_id,
                id=conversation,
                metadata={"agent_id": agent_id, "user_id": user_id, "channel": channel},
                created_at=created_at,
            )
        embedding_id = None
        if mean is not None and np.any(mean):
            embedding_id = vectors.store(mean, id=message_id, model_version=parameters["model"])
        file.add_message(
            conversation,
            role,
            content,
            id=message_id,
            timestamp=created_at,
            embedding_id=embedding_id,
        )


def _stream(select: str, parameters: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    with connection.chunked_cursor() as cursor:
        cursor.execute(select, parameters)
        while rows := cursor.fetchmany(BATCH):
            yield from rows


@contextmanager
def _repeatable_read() -> Iterator[None]:
    """Run the block in a transaction with the isolation level REPEATABLE READ."""
    connection.ensure_connection()
    session = connection.connection
    # Not with SQL: the backend would send another statement before it.
    session.isolation_level = IsolationLevel.REPEATABLE_READ
    try:
        with transaction.atomic(durable=True):
            yield
    finally:
        if not session.closed:
            session.isolation_level = None


def _remove(draft: Path) -> None:
    for name in (draft, draft.with_name(f"{draft.name}-wal"), draft.with_name(f"{draft.name}-shm")):
        name.unlink(missing_ok=True)
