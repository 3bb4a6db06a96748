"""The progress of an erasure. It is stored on the request, so that an interrupted one continues."""

import hashlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from konstruct.privacy.erasure.person import Person
from tenants.audit.models import ErasureRequest

Report = Callable[[str], None]


class ErasureProgress:
    """Counts of removed rows, and the current step."""

    def __init__(self, request: ErasureRequest, report: Report) -> None:
        self._request = request
        self._report = report
        self.found: dict[str, Any] = request.progress or {
            "began_at": now(),
            "rounds": 0,
            "step": "begins",
            "tables": {},
            "cache_keys": 0,
            "messages": {"removed": 0, "of": 0},
            "replies_erased": 0,
            "replies_kept": 0,
        }

    def reload(self) -> None:
        """Discard counts of a transaction that was rolled back."""
        self._request.refresh_from_db(fields=["progress"])
        self.found = self._request.progress or self.found

    def begin_round(self, person: Person, messages: int) -> None:
        """Record the person of this round, and the number of messages to remove."""
        removed = self.found["messages"]["removed"]
        self.found |= {**person.fields(), "rounds": self.found["rounds"] + 1}
        self.found["messages"] = {"removed": removed, "of": removed + messages}
        self.step("removes keys")

    def step(self, step: str) -> None:
        """Record the step that begins."""
        self.found["step"] = step
        self.save()
        self._report(step)

    def add_rows(self, table: str, keys: Iterable[str] | None, count: int, action: str) -> None:
        """Count rows that were removed or changed; call `save` in the same transaction."""
        add_rows(self.found["tables"], table, keys, count, action)

    def add_messages(self, count: int) -> None:
        """Count removed messages; call `save` in the same transaction."""
        messages = self.found["messages"]
        messages["removed"] += count
        messages["of"] = max(messages["of"], messages["removed"])

    def add_cache_keys(self, count: int) -> None:
        """Count keys that were removed."""
        self.found["cache_keys"] += count
        self.save()

    def report_messages(self) -> None:
        """Report the number of removed messages."""
        messages = self.found["messages"]
        self._report(f"{messages['removed']} of {messages['of']} messages removed")

    def save(self) -> None:
        """Save the progress on the request."""
        ErasureRequest.objects.filter(pk=self._request.pk).update(progress=self.found)


def add_rows(
    tables: dict[str, dict[str, Any]],
    table: str,
    keys: Iterable[str] | None,
    count: int,
    action: str,
) -> None:
    """Add rows of a table to the counts of a receipt.

    Args:
        tables: the counts of the receipt by table.
        table: the table.
        keys: the ids of the rows, for their digest; None: without a digest.
        count: the number of rows.
        action: "removed" or "changed".
    """
    if not count:
        return
    of_table = tables.setdefault(table, {})
    of_table[action] = of_table.get(action, 0) + count
    if keys is not None:
        of_table["sha256_of_ids"] = with_digests(of_table.get("sha256_of_ids", "0"), keys)


def with_digests(sum_so_far: str, keys: Iterable[str]) -> str:
    """Add the SHA-256 of each id, modulo 2**256: the sum does not depend on the order."""
    total = int(sum_so_far, 16)
    for key in keys:
        total += int.from_bytes(hashlib.sha256(key.encode()).digest())
    return f"{total % 2**256:064x}"


def now() -> str:
    """Return the current time for receipts."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
