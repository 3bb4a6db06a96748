"""How far an erasure is: kept on its request, so that it can be told, and gone on with."""

import hashlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from konstruct.privacy.erasure.person import Person
from tenants.audit.models import ErasureRequest

Report = Callable[[str], None]


class ErasureProgress:
    """What was removed so far, and which step is being done."""

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
        }

    def reload(self) -> None:
        """Forget what a transaction that was rolled back has added."""
        self._request.refresh_from_db(fields=["progress"])
        self.found = self._request.progress or self.found

    def person(self) -> Person | None:
        """The person as an interrupted erasure has found them, None for one that begins."""
        return Person.read(self._request, self.found) if "user_ids" in self.found else None

    def begin_round(self, person: Person, messages: int) -> None:
        """Note whom this round is about, and how many messages are to be removed."""
        removed = self.found["messages"]["removed"]
        self.found |= {**person.written(), "rounds": self.found["rounds"] + 1}
        self.found["messages"] = {"removed": removed, "of": removed + messages}
        self.step("waits for replies that are being written")

    def step(self, step: str) -> None:
        """Note what is done from now on."""
        self.found["step"] = step
        self.save()
        self._report(step)

    def add_rows(self, table: str, keys: Iterable[str] | None, count: int, done: str) -> None:
        """Add rows that were removed, or changed; `save` has to follow in their transaction."""
        add_rows(self.found["tables"], table, keys, count, done)

    def add_messages(self, count: int) -> None:
        """Add messages that were removed; `save` has to follow in their transaction."""
        messages = self.found["messages"]
        messages["removed"] += count
        messages["of"] = max(messages["of"], messages["removed"])

    def add_cache_keys(self, count: int) -> None:
        """Add keys that were removed."""
        self.found["cache_keys"] += count
        self.save()

    def report_messages(self) -> None:
        """Tell how many messages are done."""
        messages = self.found["messages"]
        self._report(f"{messages['removed']} of {messages['of']} messages removed")

    def save(self) -> None:
        """Write it down."""
        ErasureRequest.objects.filter(pk=self._request.pk).update(progress=self.found)


def add_rows(
    tables: dict[str, dict[str, Any]],
    table: str,
    keys: Iterable[str] | None,
    count: int,
    done: str,
) -> None:
    """Add rows of a table to what a receipt has by table."""
    if not count:
        return
    of_table = tables.setdefault(table, {})
    of_table[done] = of_table.get(done, 0) + count
    if keys is not None:
        of_table["sha256_of_ids"] = with_digests(of_table.get("sha256_of_ids", "0"), keys)


def with_digests(sum_so_far: str, keys: Iterable[str]) -> str:
    """Add the SHA-256 of each id, modulo 2**256: the same in whatever order rows are removed."""
    total = int(sum_so_far, 16)
    for key in keys:
        total += int.from_bytes(hashlib.sha256(key.encode()).digest())
    return f"{total % 2**256:064x}"


def now() -> str:
    """The time, for receipts."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
