"""What web and workers remove for good is noted in the journal of erasures by the owner's worker.

They have no access to the file. They enqueue a job in the transaction of the removal, and its key
is the digest that the journal has: the row that it stands for is gone.
"""

from typing import Final
from uuid import UUID

from tenants import jobs, journal
from tenants.context import required_tenant_id

TOMBSTONES: Final = jobs.owner_kind("tombstone")
# Kinds of rows, by which a restored tenant is searched (konstruct/privacy/replaying.py).
KEY: Final = "key"
MEMBER: Final = "member"
FACT: Final = "fact"
SESSION: Final = "session"
ROWS: Final = "rows"
# Digests in one line of the journal.
MAX_ROWS: Final = 1_000


def bury(kind: str, *ids: object) -> None:
    """Note that rows of the current tenant must not come back with a backup.

    Call it in the transaction that removes, revokes or deactivates them.

    Args:
        kind: KEY, MEMBER, FACT or SESSION.
        ids: of the rows.
    """
    if ids and journal.is_kept():
        tenant_id = required_tenant_id()
        keys = {UUID(journal.digest(tenant_id, kind, str(each))) for each in ids}
        TOMBSTONES.enqueue_many(sorted(keys))


def write_tombstones() -> None:
    """Write what waits in the current tenant into the journal, MAX_ROWS in a line.

    Raises:
        JournalUnavailable: the journal cannot be written; the jobs stay.
    """
    waiting = TOMBSTONES.jobs().waiting().order_by("key").values_list("key", flat=True)
    # Ends: each iteration removes jobs, and the owner's worker is called again for later ones.
    while keys := list(waiting[:MAX_ROWS]):
        journal.append(required_tenant_id(), ROWS, rows=[key.hex for key in keys])
        TOMBSTONES.finish_many(keys)
