"""Exports a tenant's memory, or one user's, at one time, into one file."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import apsw
import numpy as np
from psycopg import IsolationLevel

from konstruct.privacy.archive.manifest import FORMAT, TABLES, Manifest, digest_of, kinds, rows_of
from memory.archive import SQLiteManager, VectorStore
from memory.embedding.embedder import model_version
from tenants import transaction
from tenants.context import connection, fetch_column, tenant_scope
from tenants.exceptions import KonstructError
from tenants.models import Tenant
from tenants.personal_data import OF_USER

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
        with (
            SQLiteManager(draft) as file,
            tenant_scope(tenant.id),
            _repeatable_read(),
        ):
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
            say(kind.name, _write_kind(sqlite, kind.name, kind.select, parameters))
        _write_offline(file, vectors, parameters)
        # Not the time of the export: the newest conversation is the one with the last message.
        sqlite.execute(
            "UPDATE conversations SET updated_at ="
            " (SELECT max(timestamp) FROM messages WHERE conversation_id = conversations.id)"
        )
        digests = {kind.name: digest_of(rows_of(sqlite, kind.name)) for kind in kinds()}
        manifest = Manifest(
            format=FORMAT,
            exported_at=datetime.now(UTC).isoformat(timespec="seconds"),
            tenant_id=str(tenant.id),
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
        sqlite.execute("INSERT INTO manifest VALUES (?)", (manifest.text(),))
    return manifest


def _write_kind(sqlite: apsw.Connection, kind: str, select: str, parameters: dict[str, Any]) -> int:
    written = 0
    for position, (row,) in enumerate(_stream(select, parameters)):
        text = json.dumps(row if not isinstance(row, str) else json.loads(row), sort_keys=True)
        sqlite.execute("INSERT INTO exported VALUES (?, ?, ?)", (kind, position, text))
        written += 1
    return written


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
