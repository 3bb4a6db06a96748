"""The rows of an archive as they are imported: objects of one shape, and data alone."""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from konstruct.privacy.archive.kinds import KINDS, Kind
from konstruct.privacy.archive.manifest import ArchiveRefused, Manifest, changed, rows_of
from memory.archive import UntrustedArchive
from memory.context.exceptions import CheckpointRefused

# Postgres makes no JSON of more than 2**28 bytes: of a row, or of the rows of a statement.
BATCH_ROWS = 500
BATCH_LENGTH = 2**24
_NOTHING = hashlib.sha256().hexdigest()
# Kinds whose rows hold what LangGraph has encoded.
ENCODED = frozenset({"checkpoint_blobs", "checkpoint_writes"})
# As Postgres writes bytes; it would read other ways to write them too.
_BYTES = re.compile(r"\\x(?:[0-9a-f]{2})*")


def batches_of(
    file: UntrustedArchive, kind: Kind, manifest: Manifest
) -> Iterator[list[dict[str, Any]]]:
    """The rows of a kind, in batches that one statement takes.

    Raises:
        ArchiveRefused: as `items_of`, or the file was changed since it was looked through. What was
            written by then must be rolled back.
    """
    batch: list[dict[str, Any]] = []
    length = 0
    digest = hashlib.sha256()
    for row, item in items_of(file, kind):
        if len(batch) == BATCH_ROWS or length + len(row) > BATCH_LENGTH:
            yield batch
            batch, length = [], 0
        digest.update(row.encode() + b"\n")
        batch.append(item)
        length += len(row)
    if digest.hexdigest() != manifest.sha256.get(kind.name, _NOTHING):
        raise changed(file.path, kind.name)
    yield batch


def items_of(file: UntrustedArchive, kind: Kind) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a kind, one after the other: as text, and read.

    Raises:
        ArchiveRefused: a row is no object, or has other fields than the first one.
    """
    fields = None
    for number, row in enumerate(rows_of(file, kind.name)):
        try:
            item = json.loads(row)
        except (ValueError, RecursionError) as error:
            raise _refused(kind, number, f"is not JSON ({error})") from error
        if not isinstance(item, dict):
            raise _refused(kind, number, "is no JSON object")
        if fields is None:
            fields = item.keys()
        if item.keys() != fields:
            raise _refused(kind, number, "has other fields than the row before it")
        if missing := set(kind.key) - fields:
            raise _refused(kind, number, f"has no {', '.join(sorted(missing))}")
        yield row, item


def refuse_unsafe_rows(file: UntrustedArchive) -> None:
    """Look through all rows before anything is written.

    Raises:
        ArchiveRefused: a row cannot be imported, or would build an object of a class that is not
            allowed when its session is read.
    """
    # Imported here: LangGraph takes half a second and 40 MB of every process that loads it.
    from memory.context.checkpoints.serializer import allowed_classes, check_stored_value

    allowed = allowed_classes()
    for kind in KINDS:
        for number, (_, item) in enumerate(items_of(file, kind)):
            if kind.name not in ENCODED:
                continue
            type_, blob = item.get("type"), item.get("blob")
            if not isinstance(type_, str) or not isinstance(blob, str | None):
                raise _refused(kind, number, "has no encoding and value")
            if not _BYTES.fullmatch(blob or "\\x"):
                raise _refused(kind, number, "has a value that is not written in hexadecimal")
            try:
                check_stored_value(type_, bytes.fromhex((blob or "")[2:]), allowed)
            except CheckpointRefused as error:
                raise _refused(kind, number, f"(thread {item['thread_id']!r}) {error}") from error


def _refused(kind: Kind, number: int, reason: str) -> ArchiveRefused:
    return ArchiveRefused(f"its {kind.name} cannot be imported: row {number} {reason}")
