"""The journal of erasures: a file outside of Postgres, used when a backup is restored.

A backup is older than later erasures. Each erasure appends a line to ERASURE_JOURNAL, and
`manage.py restore` repeats the erasures after the backup before the tenant is served. A line has
keyed digests instead of ids: they can be compared with the ids of a restored tenant, and cannot be
read without SECRET_KEY
(docs/decisions/0028-the-access-log-has-pseudonyms-receipts-have-digests.md).

Each line has an HMAC of itself and of the HMAC of the line before. A line that was changed, added
or removed without SECRET_KEY is therefore found.
"""

import fcntl
import hmac
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from tenants.exceptions import KonstructError
from tenants.secret_keys import canonical, key_id, keyed_digest, secrets, signature

_PURPOSE: Final = b"konstruct.journal"
# 128 bits, as of pseudonyms.
_DIGITS: Final = 32
# The last line is searched for in so many bytes, doubled until it is found.
_TAIL_BYTES: Final = 65_536

# Kinds of lines about a tenant as a whole. A deletion that failed has no TENANT line.
DELETION_BEGUN: Final = "tenant deletion begun"
DELETION_FAILED: Final = "tenant deletion failed"
TENANT: Final = "tenant"
RESTORED: Final = "tenant restored"

Entry = dict[str, Any]


class JournalUnavailable(KonstructError):
    """The journal cannot be written or read."""

    public = "The journal of erasures cannot be written; this is tried again."


class JournalBroken(KonstructError):
    """The journal was changed, is another deployment's, or has lines of an unknown SECRET_KEY."""


def digest(tenant_id: UUID, kind: str, *parts: str) -> str:
    """Return the keyed digest of a row for the journal.

    Args:
        tenant_id: the tenant of the row.
        kind: the kind of the row, such as "message".
        parts: its id.
    """
    return _digest(settings.SECRET_KEY, tenant_id, kind, parts)


def digests(tenant_id: UUID, kind: str, *parts: str) -> set[str]:
    """Return the digests of a row under each SECRET_KEY that is or was in use."""
    return {_digest(secret, tenant_id, kind, parts) for secret in secrets()}


def is_enabled() -> bool:
    """Return whether this deployment keeps a journal."""
    return bool(settings.ERASURE_JOURNAL)


def append(tenant_id: UUID, kind: str, **fields: Any) -> bool:
    """Append a line, and wait until it is on the disk. It is safe across processes.

    Args:
        tenant_id: the tenant of the erasure.
        kind: the kind of the erased rows.
        fields: values for the repetition, as JSON; digests instead of ids.

    Returns:
        False if this deployment keeps no journal.

    Raises:
        JournalUnavailable: the file does not exist, or cannot be written.
    """
    if not is_enabled():
        return False
    entry = {"at": datetime.now(UTC).isoformat(), "tenant": str(tenant_id), "kind": kind, **fields}
    try:
        # The file is not created: an unmounted disk leaves an empty folder, which is no journal.
        file = os.open(settings.ERASURE_JOURNAL, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            _write(file, entry)
        finally:
            os.close(file)
    except OSError as error:
        raise _unavailable(error) from error
    return True


def position() -> str:
    """Return the HMAC of the last line; "" if there is none.

    Raises:
        JournalUnavailable: the file cannot be read.
    """
    if not is_enabled():
        return ""
    try:
        file = os.open(settings.ERASURE_JOURNAL, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _last_line(file)[0]
        finally:
            os.close(file)
    except OSError as error:
        raise _unavailable(error) from error


def read(after: str = "") -> list[Entry]:
    """Return the lines after a position, and check the whole file.

    An incomplete last line is ignored: its erasure was not done, and will be written again.

    Args:
        after: a result of `position`; "" for all lines.

    Raises:
        JournalUnavailable: the file cannot be read.
        JournalBroken: a line was changed or removed, or is of another SECRET_KEY; or the journal
            does not have the position.
    """
    try:
        with Path(settings.ERASURE_JOURNAL).open("rb") as file:
            entries = list(_check_lines(enumerate(file, start=1)))
    except OSError as error:
        raise _unavailable(error) from error
    if not after:
        return entries
    for place, entry in enumerate(entries):
        if entry["mac"] == after:
            return entries[place + 1 :]
    raise JournalBroken(
        f"{settings.ERASURE_JOURNAL} does not have the line at which the backup was made: it is"
        " another journal, or an older copy"
    )


def _check_lines(lines: Iterator[tuple[int, bytes]]) -> Iterator[Entry]:
    known = {key_id(secret): secret for secret in secrets()}
    before: str | None = None
    for number, line in lines:
        entry = _parse(line)
        if entry is None:
            continue
        where = f"line {number} of {settings.ERASURE_JOURNAL}"
        if entry.get("key") not in known:
            raise JournalBroken(
                f"{where} was written under another SECRET_KEY ({entry.get('key')}): add that key"
                " to SECRET_KEY_FALLBACKS"
            )
        is_next = before is None or entry.get("prev") == before
        if not is_next or not hmac.compare_digest(_mac(entry, known[entry["key"]]), entry["mac"]):
            raise JournalBroken(f"{where}, or one before it, was changed or removed")
        before = entry["mac"]
        yield entry


def _parse(line: bytes) -> Entry | None:
    """Return a parsed line; None for an incomplete one."""
    with suppress(ValueError):
        entry = json.loads(line)
        if isinstance(entry, dict) and isinstance(entry.get("mac"), str) and line.endswith(b"\n"):
            return entry
    return None


def _write(file: int, entry: Entry) -> None:
    before, is_cut_off = _last_line(file)
    secret = settings.SECRET_KEY
    entry |= {"key": key_id(secret), "prev": before}
    entry["mac"] = _mac(entry, secret)
    line = (b"\n" if is_cut_off else b"") + canonical(entry) + b"\n"
    if os.write(file, line) != len(line):
        raise OSError("there is no space left for the line")
    os.fsync(file)


def _last_line(file: int) -> tuple[str, bool]:
    """Return the HMAC of the last line, and whether an incomplete line follows it."""
    size, window = os.fstat(file).st_size, _TAIL_BYTES
    # Ends: the window doubles until it has a line, or the whole file.
    while True:
        start = max(0, size - window)
        lines = os.pread(file, size - start, start).splitlines(keepends=True)
        is_cut_off = bool(lines) and not lines[-1].endswith(b"\n")
        # The first of the window may be the end of a line.
        for line in reversed(lines if start == 0 else lines[1:]):
            if (entry := _parse(line)) is not None:
                return str(entry["mac"]), is_cut_off
        if start == 0:
            return "", is_cut_off
        window *= 2


def _mac(entry: Entry, secret: str | bytes) -> str:
    return signature({name: entry[name] for name in entry if name != "mac"}, _PURPOSE, secret)


def _digest(secret: str | bytes, tenant_id: UUID, kind: str, parts: tuple[str, ...]) -> str:
    value = "\0".join((str(tenant_id), kind, *parts)).encode()
    return keyed_digest(value, _PURPOSE, secret)[:_DIGITS]


def _unavailable(error: OSError) -> JournalUnavailable:
    return JournalUnavailable(
        f"the journal of erasures {settings.ERASURE_JOURNAL} cannot be used:"
        f" {error.strerror or error}"
    )
