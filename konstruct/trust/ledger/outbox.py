"""What waits in a table of the tenant's stands in the outbox, and what stands there waits."""

from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

from django.db import connection

from konstruct.trust.ledger.records import Finding
from tenants.models import OutboxEntry

NOT_IN_THE_OUTBOX = "work that waits and has no place in the outbox"
OF_NOTHING = "place in the outbox for nothing that waits"

# Of each kind: its rows that wait, with their keys; and what tells the outbox of one again.
_WAITING: Final = {
    "embedding": "SELECT message_id FROM memory_pendingembedding",
    "delivery": "SELECT message_id FROM channels_delivery"
    " WHERE due_at IS NOT NULL AND failed_at IS NULL",
    "arrival": "SELECT lpad(to_hex(id), 32, '0')::uuid FROM channels_arrival"
    " WHERE failed_at IS NULL",
    "reply": "SELECT id FROM memory_message WHERE role = 'user'",
}
_TELL: Final = {
    "embedding": "UPDATE memory_pendingembedding SET due_at = due_at WHERE message_id = ANY(%s)",
    "delivery": "UPDATE channels_delivery SET ring_at = ring_at WHERE message_id = ANY(%s)",
    "arrival": "UPDATE channels_arrival SET ring_at = ring_at"
    " WHERE lpad(to_hex(id), 32, '0')::uuid = ANY(%s)",
}
_ENTRIES = "SELECT key FROM tenants_outboxentry WHERE kind = %s"


def count() -> dict[str, int]:
    """No figures: what waits is counted where it waits."""
    return {}


def check() -> Iterator[Finding]:
    """Compare both ways. The outbox of replies is its own truth: only strays are looked for."""
    with connection.cursor() as cursor:
        for kind, waiting in _WAITING.items():
            cursor.execute(f"{_ENTRIES} EXCEPT {waiting}", [kind])
            yield from (Finding(OF_NOTHING, f"{kind} {key}") for (key,) in cursor.fetchall())
            if kind in _TELL:
                cursor.execute(f"{waiting} EXCEPT {_ENTRIES}", [kind])
                yield from (
                    Finding(NOT_IN_THE_OUTBOX, f"{kind} {key}") for (key,) in cursor.fetchall()
                )


def put_in(findings: Sequence[Finding]) -> None:
    """Let workers find what waits."""
    with connection.cursor() as cursor:
        for kind, tell in _TELL.items():
            cursor.execute(tell, [_keys(findings, kind)])


def take_out(findings: Sequence[Finding]) -> None:
    """Remove what nothing waits for."""
    for kind in _WAITING:
        OutboxEntry.objects.filter(kind=kind, key__in=_keys(findings, kind)).delete()


def _keys(findings: Sequence[Finding], kind: str) -> list[UUID]:
    subjects = (each.subject.split() for each in findings)
    return [UUID(key) for of_kind, key in subjects if of_kind == kind]


REPAIRS = {NOT_IN_THE_OUTBOX: put_in, OF_NOTHING: take_out}
