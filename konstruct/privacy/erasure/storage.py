"""What was removed leaves traces in files: taking away those that we can, and naming the others.

A removed row's bytes stay in its table's file until the page is used again; VACUUM only makes
room for that. VACUUM FULL writes the table anew without them, and no session can use it meanwhile.
Neither takes away what a transaction that is still open might read, in whatever database of the
server it is: so those that began before are waited for, and the table's dead rows counted.
"""

import logging
import time
from collections.abc import Iterable
from typing import Any

from django.db import InternalError, OperationalError

from tenants.cache_file import rewrite_cache_file
from tenants.context import execute, fetch_value, tenant_connection

logger = logging.getLogger(__name__)

# Tables up to this size, with indexes, are written anew at once: a second or two of this machine's
# slowest, most of it the graph of vectors. Larger ones when an operator says so.
REWRITTEN_UP_TO_BYTES = 16 * 2**20
# Who waits for a table so long gives way to who uses it.
LOCK_TIMEOUT = "500ms"
# PostgreSQL's horizon of removable rows may move backwards between the vacuum of a TOAST table and
# a rewrite, which then misses the TOAST rows of a dead row and fails. The next attempt succeeds.
MAX_REWRITE_ATTEMPTS = 3
# So long the transactions that were open when rows were removed are given to end.
TRANSACTION_SECONDS = 5.0
# Copies that we cannot remove, and when they expire.
LATER = {
    "write_ahead_log": "when PostgreSQL recycles the segments written until now",
    "statistics": "when PostgreSQL vacuums its own catalogue",
    "logs": "with their rotation: lines of PostgreSQL and of ours from before",
    "backups": "when they expire: dumps, archives and replicas' snapshots from before",
}


def settle(tables: Iterable[str], *, rewrite: bool = False) -> dict[str, Any]:
    """Let the files of these tables, and the cache's, forget what was removed; what was done.

    Args:
        rewrite: write every table anew, whatever its size.
    """
    stored: dict[str, Any] = {"rewritten": [], "vacuumed": [], "later": dict(LATER)}
    _wait_for_older_transactions()
    for table in sorted(tables):
        _settle_table(table, stored, rewrite=rewrite)
    stored["cache_file"] = rewrite_cache_file()
    if stored["cache_file"] not in ("rewritten", "none"):
        stored["later"]["cache_file"] = "when the cache writes its file anew"
    return stored


def settle_one_more(table: str, stored: dict[str, Any], *, rewrite: bool = False) -> None:
    """Let a table that was written to after `settle` forget too, and say so in what it returned."""
    _wait_for_older_transactions()
    _settle_table(table, stored, rewrite=rewrite)


def _settle_table(table: str, stored: dict[str, Any], *, rewrite: bool) -> None:
    if (rewrite or _size(table) <= REWRITTEN_UP_TO_BYTES) and _rewrite(table):
        if not _dead_rows(table):
            stored["rewritten"].append(table)
            return
        logger.warning("%s holds removed rows that an open transaction may still read", table)
    else:
        _vacuum(table, "(ANALYZE)")
    stored["vacuumed"].append(table)
    stored["later"]["pages_of_vacuumed_tables"] = (
        "when their space is used again, or with erase_user --rewrite"
    )


def _wait_for_older_transactions() -> None:
    """Wait until transactions that began before now have ended, or for TRANSACTION_SECONDS."""
    deadline = time.monotonic() + TRANSACTION_SECONDS
    # Counts of our own removals would otherwise come in after those of ANALYZE.
    execute("SELECT pg_stat_force_next_flush()")
    next_transaction = fetch_value("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
    while time.monotonic() < deadline:
        if fetch_value(
            "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= %s::xid8", [next_transaction]
        ):
            return
        time.sleep(0.05)


def _dead_rows(table: str) -> int:
    """Removed rows in the table's file, as ANALYZE has just counted them."""
    return int(fetch_value("SELECT pg_stat_get_dead_tuples(%s::regclass)", [_name(table)]))


def _size(table: str) -> int:
    return int(fetch_value("SELECT pg_total_relation_size(%s)", [_name(table)]))


def _rewrite(table: str) -> bool:
    before = fetch_value("SELECT current_setting('lock_timeout')")
    execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
    try:
        _rewrite_table(table)
    except OperationalError as error:
        logger.warning("%s is not written anew, since it is in use: %s", table, error)
        return False
    finally:
        execute(f"SET lock_timeout = '{before}'")
    return True


def _rewrite_table(table: str) -> None:
    """Run VACUUM FULL.

    Raises:
        OperationalError: another session uses the table for longer than LOCK_TIMEOUT.
        InternalError: the table or its TOAST table is damaged.
    """
    for attempt in range(1, MAX_REWRITE_ATTEMPTS + 1):
        try:
            return _vacuum(table, "(FULL, ANALYZE)")
        except InternalError as error:
            if attempt == MAX_REWRITE_ATTEMPTS:
                raise
            logger.warning("VACUUM FULL of %s failed and is repeated: %s", table, error)
            _wait_for_older_transactions()


def _vacuum(table: str, how: str) -> None:
    execute(f"VACUUM {how} {_name(table)}")


def _name(table: str) -> str:
    return f"{tenant_connection().schema_name}.{table}"
