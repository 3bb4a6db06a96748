"""Enqueues notes about removed rows for the journal of erasures.

Web processes and workers have no access to the journal's file. They enqueue a job in the
transaction of the removal; its key is the digest of the removed row. The owner's worker writes
the digests into the journal.
"""

from uuid import UUID

from tenants import context, jobs, journal

TOMBSTONES = jobs.owner_kind("tombstone")
# Kinds of rows that `restore` removes again (konstruct/backups/restoring.py).
KEY = "key"
MEMBER = "member"
FACT = "fact"
SESSION = "session"
ROWS = "rows"
# Digests in one line of the journal.
MAX_ROWS = 1_000


def enqueue_tombstones(kind: str, *ids: object) -> None:
    """Enqueue notes that rows of the current tenant were removed, so that no backup restores them.

    Call it in the transaction that removes, revokes or deactivates them.

    Args:
        kind: KEY, MEMBER, FACT or SESSION.
        ids: ids of the rows.
    """
    if ids and journal.is_enabled():
        tenant_id = context.required_tenant_id()
        keys = {UUID(journal.digest(tenant_id, kind, str(row_id))) for row_id in ids}
        TOMBSTONES.enqueue_many(sorted(keys))


def write_tombstones() -> None:
    """Write the waiting notes of the current tenant into the journal, MAX_ROWS in a line.

    Raises:
        JournalUnavailable: the journal cannot be written; the jobs stay.
    """
    waiting = TOMBSTONES.jobs().waiting().order_by("key").values_list("key", flat=True)
    # Ends: each iteration removes jobs, and the owner's worker repeats the call for later ones.
    while keys := list(waiting[:MAX_ROWS]):
        journal.append(context.required_tenant_id(), ROWS, rows=[key.hex for key in keys])
        TOMBSTONES.finish_many(keys)
