"""Removes erased data from the files of Postgres and the cache, and reports remaining copies.

The bytes of a removed row stay in the file of its table until the space is used again, which VACUUM
makes possible. VACUUM FULL rewrites the table without them, and locks it meanwhile. Neither removes
rows that an open transaction in any database of the server may read. So this module waits for
earlier transactions, and counts the dead rows of the table afterwards.
"""

import logging
import time
from collections.abc import Iterable
from typing import Any

from django.db import InternalError, OperationalError
from django_redis import get_redis_connection

from konstruct.privacy.erasure.person import Person
from tenants.context import execute, fetch_value, tenant_connection
from tenants.redis_keys import (
    engaged_thread_key,
    escalation_status_key,
    escape_part,
    pending_tool_confirm_key,
    session_key,
    user_windows_pattern,
)
from tenants.schemas.provisioning import rewrite_cache_file

logger = logging.getLogger(__name__)

# Tables up to this size, with indexes, are always rewritten. It takes one or two seconds on a slow
# machine, most of it for the vector index. Larger tables are rewritten on request.
MAX_REWRITE_BYTES = 16 * 2**20
# After this time VACUUM FULL gives way to other sessions.
LOCK_TIMEOUT = "500ms"
# PostgreSQL's horizon of removable rows may move backwards between the vacuum of a TOAST table and
# a rewrite, which then misses the TOAST rows of a dead row and fails. The next attempt succeeds.
MAX_REWRITE_ATTEMPTS = 3
# How long to wait for the end of earlier transactions.
TRANSACTION_TIMEOUT_SECONDS = 5.0
# Copies that cannot be removed, and when they expire.
REMAINING_COPIES = {
    "write_ahead_log": "when PostgreSQL recycles the segments written until now",
    "statistics": "when PostgreSQL vacuums its own catalogue",
    "logs": "with their rotation: lines of PostgreSQL and of ours from before",
    "backups": "when they expire: dumps, archives and replicas' snapshots from before",
}


def purge_files(tables: Iterable[str], *, rewrite: bool = False) -> dict[str, Any]:
    """Remove erased data from the files of these tables and of the cache.

    Args:
        tables: names of tables of the current tenant.
        rewrite: whether to rewrite every table, of any size.

    Returns:
        The part "storage" of the receipt.
    """
    stored: dict[str, Any] = {"rewritten": [], "vacuumed": [], "later": dict(REMAINING_COPIES)}
    _wait_for_older_transactions()
    for table in sorted(tables):
        _purge_table(table, stored, rewrite=rewrite)
    stored["cache_file"] = rewrite_cache_file()
    if stored["cache_file"] not in ("rewritten", "none"):
        stored["later"]["cache_file"] = "when the cache writes its file anew"
    return stored


def purge_one_more_file(table: str, stored: dict[str, Any], *, rewrite: bool = False) -> None:
    """Purge a table that was changed after `purge_files`, and add it to its result."""
    _wait_for_older_transactions()
    _purge_table(table, stored, rewrite=rewrite)


def _purge_table(table: str, stored: dict[str, Any], *, rewrite: bool) -> None:
    size = fetch_value("SELECT pg_total_relation_size(%s)", [_name(table)])
    if (rewrite or size <= MAX_REWRITE_BYTES) and _rewrite(table):
        # As ANALYZE has counted them.
        if not fetch_value("SELECT pg_stat_get_dead_tuples(%s::regclass)", [_name(table)]):
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
    """Wait until earlier transactions have ended, at most for TRANSACTION_TIMEOUT_SECONDS."""
    deadline = time.monotonic() + TRANSACTION_TIMEOUT_SECONDS
    # Otherwise counts of our own removals would be added after those of ANALYZE.
    execute("SELECT pg_stat_force_next_flush()")
    next_transaction = fetch_value("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
    while time.monotonic() < deadline:
        if fetch_value(
            "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= %s::xid8", [next_transaction]
        ):
            return
        time.sleep(0.05)


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


THREAD_KEYS = (session_key, engaged_thread_key, escalation_status_key, pending_tool_confirm_key)
BATCH = 1000


def remove_keys(person: Person) -> int:
    """Remove the keys of the person's windows and threads; return their number.

    Windows are searched: that of an agent without rows of the person is one too. Shared threads
    lose their window only, which is rebuilt when needed.
    """
    client, tenant_id = get_redis_connection("default"), person.tenant_id
    keys = {
        name(tenant_id, thread) for thread in filter(None, person.threads) for name in THREAD_KEYS
    }
    keys |= {session_key(tenant_id, thread) for thread in filter(None, person.shared_threads)}
    parts = {escape_part(user_id) for user_id in person.user_ids}
    for key in map(bytes.decode, client.scan_iter(user_windows_pattern(tenant_id), count=BATCH)):
        *_, agent_id, user_id = key.split(":")
        if user_id in parts and str(person.agent_id or agent_id) == agent_id:
            keys.add(key)
    return int(client.unlink(*keys)) if keys else 0
