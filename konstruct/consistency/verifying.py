"""Verifying a tenant's memory, and putting right what can be."""

import time
from collections.abc import Iterable
from itertools import groupby
from uuid import UUID

from konstruct.consistency import facts, indexing, metadata, outbox, replies, windows
from konstruct.consistency.records import Finding, Ledger
from tenants.context import tenant_scope

BOOKS = (replies, outbox, indexing, windows, facts, metadata)
# What is in work at this moment can look wrong, and does not a moment later.
LOOK_AGAIN_SECONDS = 1.0
REPAIRED_AT_ONCE = 1000


def verify(tenant_id: UUID, name: str, *, repair: bool = False) -> Ledger:
    """Compare everything that must agree. It may run while the tenant is served.

    Args:
        name: what the ledger calls the tenant.
        repair: put right what can be; what was found then stands in `repaired`, and `findings` has
            what is left. Some repairs need the owner's role.
    """
    with tenant_scope(tenant_id):
        found = _findings()
        repaired: list[Finding] = []
        if found and repair:
            _repair(found)
            left = _findings()
            repaired = [finding for finding in found if finding not in left]
            found = left
        counts = {label: number for book in BOOKS for label, number in book.count().items()}
        return Ledger(name, counts, found, repaired)


def _findings() -> list[Finding]:
    found = _look()
    if found:
        time.sleep(LOOK_AGAIN_SECONDS)
        still = set(_look())
        found = [finding for finding in found if finding in still]
    return found


def _look() -> list[Finding]:
    return [finding for book in BOOKS for finding in book.check()]


def _repair(findings: Iterable[Finding]) -> None:
    repairs = {kind: repair for book in BOOKS for kind, repair in book.REPAIRS.items()}
    for kind, group in groupby(sorted(findings), key=lambda finding: finding.kind):
        if kind in repairs:
            wrong = list(group)
            for start in range(0, len(wrong), REPAIRED_AT_ONCE):
                repairs[kind](wrong[start : start + REPAIRED_AT_ONCE])
