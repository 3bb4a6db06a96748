"""What waits in a table of the tenant's stands in the outbox, and what stands there waits."""

from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

from konstruct.consistency.records import Finding
from tenants.context import connection
from tenants.models import OutboxEntry
from tenants.operations.outbox import MIRRORED

NOT_IN_THE_OUTBOX = "work that waits and has no place in the outbox"
OF_NOTHING = "place in the outbox for nothing that waits"

# The outbox of replies is its own truth: only strays are looked for.
_REPLIES: Final = "SELECT id FROM memory_message WHERE role = 'user'"
_ENTRIES: Final = "SELECT key FROM tenants_outboxentry WHERE kind = %s"


def count() -> dict[str, int]:
    """No figures: what waits is counted where it waits."""
    return {}


def check() -> Iterator[Finding]:
    """Compare both ways."""
    with connection.cursor() as cursor:
        for kind, of in MIRRORED.items():
            cursor.execute(f"{of.keys_sql} EXCEPT {_ENTRIES}", [kind])
            yield from (Finding(NOT_IN_THE_OUTBOX, f"{kind} {key}") for (key,) in cursor.fetchall())
        waiting = {"reply": _REPLIES, **{kind: of.keys_sql for kind, of in MIRRORED.items()}}
        for kind, keys in waiting.items():
            cursor.execute(f"{_ENTRIES} EXCEPT {keys}", [kind])
            yield from (Finding(OF_NOTHING, f"{kind} {key}") for (key,) in cursor.fetchall())


def put_in(findings: Sequence[Finding]) -> None:
    """Let workers find what waits."""
    with connection.cursor() as cursor:
        for kind, of in MIRRORED.items():
            cursor.execute(of.touch_sql, [_keys(findings, kind)])


def take_out(findings: Sequence[Finding]) -> None:
    """Remove what nothing waits for."""
    for kind in ("reply", *MIRRORED):
        OutboxEntry.objects.filter(kind=kind, key__in=_keys(findings, kind)).delete()


def _keys(findings: Sequence[Finding], kind: str) -> list[UUID]:
    subjects = (each.subject.split() for each in findings)
    return [UUID(key) for of_kind, key in subjects if of_kind == kind]


REPAIRS = {NOT_IN_THE_OUTBOX: put_in, OF_NOTHING: take_out}
