"""The person of an erasure: their ids, and their rows in tables, files of Postgres and the cache.

The bytes of a removed row stay in the file of its table until the space is used again, which VACUUM
makes possible. VACUUM FULL rewrites the table without them, and locks it meanwhile. Neither removes
rows that an open transaction in any database of the server may read. So `purge_files` waits for
earlier transactions, and counts the dead rows of the table afterwards.
"""

import hashlib
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Self
from uuid import UUID

from django.apps import apps
from django.db import InternalError, OperationalError
from django.db.models import Q, QuerySet, UUIDField
from django_redis import get_redis_connection

from konstruct.orchestrator.identities.channel_identities import is_known, linked_ids
from konstruct.orchestrator.identities.erasure_requests import threads_of
from konstruct.orchestrator.models import ChannelIdentity
from memory.models import Message, PersonName
from memory.models.recall import scope_number
from memory.text.lexical import fold
from tenants import personal_data, redis_keys
from tenants.audit.models import ErasureRequest
from tenants.audit.people import is_distinctive
from tenants.context import connection, execute, fetch_column, fetch_value, tenant_connection
from tenants.exceptions import KonstructError
from tenants.personal_data import OF_EVERY_PERSON, OnErasure, PersonalData, personal_tables
from tenants.schemas.provisioning import rewrite_cache_file

logger = logging.getLogger(__name__)

AddRows = Callable[[str, Iterable[str] | None, int, str], None]

MESSAGES: Final = Message._meta.db_table
# Shorter names are ignored, because they are words of many texts.
MIN_NAME_CHARACTERS: Final = 3


_UUIDS: Final = {
    model._meta.db_table for model in apps.get_models() if isinstance(model._meta.pk, UUIDField)
}
# The ids of a person's rows, by which other tables refer to them: UUIDs.
IDS: Final = " UNION ALL ".join(
    f"SELECT {data.key} AS id FROM {table} WHERE {data.of_person}"
    for table, data in personal_tables().items()
    if data.subject and data.key and table in _UUIDS
)
# The agents that have rows of a person.
_AGENTS: Final = " UNION ".join(
    f"SELECT {data.agent} FROM {table} WHERE {data.of_person} AND {data.agent} IS NOT NULL"
    for table, data in personal_tables().items()
    if data.subject and data.agent and data.on_erasure is OnErasure.DELETE
)


def patterns_of(user_ids: Sequence[str]) -> list[str]:
    """Return regular expressions of Postgres for texts that name a person, as whole words.

    A text names a person by an id, or by a name that no other person of the tenant has.
    """
    own = PersonName.objects.filter(user_id__in=user_ids).values_list("name", flat=True)
    accounts = ChannelIdentity.objects.filter(user_id__in=user_ids)
    names = {fold(name): name for name in (*own, *accounts.values_list("name", flat=True))}
    others = PersonName.objects.filter(folded__in=names).exclude(user_id__in=user_ids)
    for folded in others.values_list("folded", flat=True):
        names.pop(folded, None)
    words = [re.findall(r"[^\W_]+", name) for name in names.values()]
    texts = [re.escape(user_id) for user_id in user_ids if is_distinctive(user_id)]
    texts += ["[^[:alnum:]]+".join(w) for w in words if len(" ".join(w)) >= MIN_NAME_CHARACTERS]
    return [f"(?<![[:alnum:]]){text}(?![[:alnum:]])" for text in texts]


@dataclass(frozen=True)
class Person:
    """A user of all agents, or of one, with all their ids and threads."""

    tenant_id: UUID
    agent_id: UUID | None
    user_ids: tuple[str, ...]
    """The id in the request is the first."""
    agents: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    """Threads with messages of the person only, or with a session of the person."""
    sessions: tuple[str, ...] = ()
    """Threads with a session of the person."""
    shared_threads: tuple[str, ...] = ()
    """Their threads that also have messages of others."""
    other_sessions: tuple[str, ...] = ()
    """Their threads with a session that does not belong to them."""
    names: tuple[str, ...] = ()
    """`patterns_of` the person in the first round; none of an id without rows, which may be any
    word."""

    @classmethod
    def of(cls, request: ErasureRequest, earlier: Mapping[str, Any]) -> Self:
        """Look up the person's ids, agents and threads, and add those of earlier rounds.

        Args:
            request: the request for the erasure.
            earlier: `fields` of the previous round; empty in the first round.
        """
        user_ids = [*linked_ids(request.user_id), *earlier.get("user_ids", ())]
        person = cls(request.tenant_id, request.agent_id, tuple(dict.fromkeys(user_ids)))
        threads = threads_of(person.user_ids, agent_id=request.agent_id, requested=request.threads)
        strict = request.by_bound_key
        sessions = {t.thread_id for t in threads if t.session_belongs_to_person(strict=strict)}
        with_session = {t.thread_id for t in threads if t.has_session}
        own = {t.thread_id for t in threads if t.belongs_to_person}
        shared = {t.thread_id for t in threads if t.has_messages and t.has_messages_of_others}
        names = () if "names" in earlier or not is_known(user_ids) else patterns_of(user_ids)
        found: dict[str, Iterable[str]] = {
            "agents": map(str, fetch_column(_AGENTS, person.parameters())),
            "threads": own | sessions,
            "sessions": sessions,
            "shared_threads": shared,
            "other_sessions": with_session - sessions,
            "names": names,
        }
        merged: Any = {
            name: tuple(sorted({*values, *earlier.get(name, ())})) for name, values in found.items()
        }
        return replace(person, **merged)

    @property
    def messages(self) -> QuerySet[Message]:
        """The person's messages."""
        rows = Message.objects.filter(user_id__in=self.user_ids)
        return rows if self.agent_id is None else rows.filter(agent_id=self.agent_id)

    def fields(self) -> dict[str, Any]:
        """Return the argument of `of` for the next round, as JSON."""
        names = ("agents", "threads", "sessions", "shared_threads", "other_sessions", "names")
        return {name: list(getattr(self, name)) for name in ("user_ids", *names)}

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of statements about this person."""
        return {
            "tenant": self.tenant_id,
            "users": list(self.user_ids),
            "agent": self.agent_id,
            "scopes": [
                scope_number(UUID(agent), user) for agent in self.agents for user in self.user_ids
            ],
            "threads": list(self.threads),
            "sessions": list(self.sessions),
            "names": list(self.names),
        }


# --- Rows -----------------------------------------------------------------------------------------


class UnknownTable(KonstructError):
    """A table has no declaration of its personal data."""


def tables_of_tenant() -> list[str]:
    """Return the names of all tables of the current tenant's schema."""
    with connection.cursor() as cursor:
        return personal_data.tables_of(cursor, tenant_connection().schema_name)


def tables_of_people() -> list[str]:
    """Return the names of the tables that an erasure removes rows of."""
    return [
        table for table, data in personal_tables().items() if data.on_erasure is OnErasure.DELETE
    ]


def refuse_unknown_tables() -> None:
    """Raise UnknownTable if an erasure could miss a table or a column."""
    with connection.cursor() as cursor:
        unknown = personal_data.undeclared_names(cursor, tenant_connection().schema_name)
    if unknown:
        raise UnknownTable(
            f"no declaration of personal data for {', '.join(unknown)}: add it to"
            " `personal_data` of the model (see tenants/personal_data.py)"
        )


def next_messages(person: Person, limit: int) -> list[Message]:
    """Return about `limit` messages of the person that are left, with their replies."""
    found = (with_replies(person.messages.filter(agent_id=pk), limit) for pk in person.agents)
    return next(filter(None, found), [])


def with_replies(messages: QuerySet[Message], limit: int) -> list[Message]:
    """Return about `limit` of these messages, with their replies and questions among them."""
    seen = messages.order_by().values_list("in_reply_to_id", "pk")[:limit]
    asked = {question or pk for question, pk in seen}
    return list(messages.filter(Q(pk__in=asked) | Q(in_reply_to__in=asked)).order_by("number"))


def count_remaining(person: Person) -> dict[str, int]:
    """Return the numbers of rows of the person that are left, by table.

    Exports, which belong to every person, are not counted: the team may have requested new ones.
    """
    values = person.parameters()
    found = {
        table: int(
            fetch_value(
                f"SELECT count(*) FROM {_name(table, data.schema)} WHERE {data.of_person}", values
            )
        )
        for table, data in deleted_tables()
        if data.of_person != OF_EVERY_PERSON
    }
    return {table: count for table, count in found.items() if count}


def delete_rows(
    cursor: Any, table: str, data: PersonalData, where: str, values: dict[str, Any], add: AddRows
) -> None:
    """Delete rows of a table, and add their number and ids to the receipt."""
    returning = f" RETURNING {data.key}::text" if data.key else ""
    cursor.execute(f"DELETE FROM {_name(table, data.schema)} WHERE {where}{returning}", values)
    keys = [key for (key,) in cursor.fetchall()] if data.key else None
    add(table, keys, cursor.rowcount, "removed")


def deleted_tables() -> list[tuple[str, PersonalData]]:
    """Return the tables with rows of a person besides those that only messages lead to."""
    return [
        (table, data)
        for table, data in personal_tables().items()
        if data.of_person and data.on_erasure is OnErasure.DELETE
    ]


def _name(table: str, schema: str = "") -> str:
    return f"{schema or tenant_connection().schema_name}.{table}"


# --- Receipts -------------------------------------------------------------------------------------


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
        # The sum does not depend on the order.
        total = int(of_table.get("sha256_of_ids", "0"), 16)
        total += sum(int.from_bytes(hashlib.sha256(key.encode()).digest()) for key in keys)
        of_table["sha256_of_ids"] = f"{total % 2**256:064x}"


def now() -> str:
    """Return the current time for receipts."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


# --- Files and the cache --------------------------------------------------------------------------

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
        execute(f"VACUUM (ANALYZE) {_name(table)}")
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
    """Run VACUUM FULL; return False if a session uses the table for longer than LOCK_TIMEOUT.

    Raises:
        InternalError: the table or its TOAST table is damaged.
    """
    before = fetch_value("SELECT current_setting('lock_timeout')")
    execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
    try:
        for attempt in range(1, MAX_REWRITE_ATTEMPTS + 1):
            try:
                execute(f"VACUUM (FULL, ANALYZE) {_name(table)}")
                break
            except InternalError as error:
                if attempt == MAX_REWRITE_ATTEMPTS:
                    raise
                logger.warning("VACUUM FULL of %s failed and is repeated: %s", table, error)
                _wait_for_older_transactions()
    except OperationalError as error:
        logger.warning("%s is not written anew, since it is in use: %s", table, error)
        return False
    finally:
        execute(f"SET lock_timeout = '{before}'")
    return True


THREAD_KEYS = (
    redis_keys.session_key,
    redis_keys.engaged_thread_key,
    redis_keys.escalation_status_key,
    redis_keys.pending_tool_confirm_key,
)
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
    keys |= {
        redis_keys.session_key(tenant_id, thread) for thread in filter(None, person.shared_threads)
    }
    parts = {redis_keys.escape_part(user_id) for user_id in person.user_ids}
    for key in map(
        bytes.decode, client.scan_iter(redis_keys.user_windows_pattern(tenant_id), count=BATCH)
    ):
        *_, agent_id, user_id = key.split(":")
        if user_id in parts and str(person.agent_id or agent_id) == agent_id:
            keys.add(key)
    return int(client.unlink(*keys)) if keys else 0
