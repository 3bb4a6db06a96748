"""Removes the rows of a person: messages in batches, with rows that belong to them; then others."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final
from uuid import UUID

from konstruct.api.models import IdempotencyRecord
from konstruct.orchestrator.messages import Thread, lock_windows
from konstruct.privacy.erasure.person import IDS, OF_PERSON, Person
from konstruct.privacy.erasure.progress import ErasureProgress
from konstruct.privacy.erasure.prompts import erase_from_prompts
from konstruct.privacy.erasure.redaction import facts_deleted_with, redact_copies, redact_new_copies
from memory.models import Message
from tenants import transaction
from tenants.context import connection, fetch_column, fetch_value, tenant_connection
from tenants.exceptions import KonstructError
from tenants.personal_data import (
    OF_EVERY_PERSON,
    OnErasure,
    PersonalData,
    personal_tables,
    tables_of,
    undeclared_names,
)

AddRows = Callable[[str, Iterable[str] | None, int, str], None]
# Approximate number of messages that are removed in one transaction, with their replies.
BATCH = 1000

MESSAGES: Final = "memory_message"
# Workers hold these rows while they write embeddings.
LOCK_EMBEDDING: Final = (
    "SELECT FROM memory_pendingembedding WHERE message_id = ANY(%(ids)s) FOR UPDATE"
)
_COUNT: Final = f"SELECT count(*) FROM memory_message WHERE {OF_PERSON}"
_NEXT: Final = f"""
    WITH seen AS (
        SELECT id, in_reply_to_id FROM memory_message WHERE {OF_PERSON} LIMIT %(limit)s
    ), asked (question) AS MATERIALIZED (
        SELECT DISTINCT coalesce(in_reply_to_id, id) FROM seen
    )
    SELECT id FROM asked JOIN memory_message ON id = question WHERE {OF_PERSON}
    UNION
    SELECT id FROM asked JOIN memory_message ON in_reply_to_id = question WHERE {OF_PERSON}
"""
_CREATED: Final = f"""
    DELETE FROM api_creation USING ({IDS}) AS theirs
    WHERE made::text = theirs.id RETURNING made::text
"""


class UnknownTable(KonstructError):
    """A table has no declaration of its personal data."""


def tables_of_tenant() -> list[str]:
    """Return the names of all tables of the current tenant's schema."""
    with connection.cursor() as cursor:
        return tables_of(cursor, tenant_connection().schema_name)


def tables_of_people() -> list[str]:
    """Return the names of the tables that an erasure removes rows of."""
    return [
        table for table, data in personal_tables().items() if data.on_erasure is OnErasure.DELETE
    ]


def refuse_unknown_tables() -> None:
    """Raise UnknownTable if an erasure could miss a table or a column."""
    with connection.cursor() as cursor:
        unknown = undeclared_names(cursor, tenant_connection().schema_name)
    if unknown:
        raise UnknownTable(
            f"no declaration of personal data for {', '.join(unknown)}: add it to"
            " `personal_data` of the model (see tenants/personal_data.py)"
        )


def count_messages(person: Person) -> int:
    """Return the number of the person's messages."""
    return int(fetch_value(_COUNT, person.parameters()))


def count_remaining(person: Person) -> dict[str, int]:
    """Return the numbers of rows of the person that are left, by table.

    Exports, which belong to every person, are not counted: the team may have requested new ones.
    """
    values = person.parameters()
    found = {
        table: int(
            fetch_value(f"SELECT count(*) FROM {_name(table, data)} WHERE {data.of_person}", values)
        )
        for table, data in _deleted_tables()
        if data.of_person != OF_EVERY_PERSON
    }
    return {table: count for table, count in found.items() if count}


def remove_idempotency_records(person: Person, progress: ErasureProgress) -> None:
    """Remove the records of Idempotency-Keys that created rows of the person, while these exist."""
    with transaction.atomic():
        keys = fetch_column(_CREATED, person.parameters())
        progress.add_rows(IdempotencyRecord._meta.db_table, keys, len(keys), "removed")
        progress.save()


def remove_messages(person: Person, progress: ErasureProgress) -> None:
    """Remove all messages in batches, with the rows that belong to them."""
    for agent_id in person.agents:
        # Ends: each batch removes messages of a person who can send no more.
        while _remove_batch(person, agent_id, progress):
            progress.report_messages()


def _remove_batch(person: Person, agent_id: UUID, progress: ErasureProgress) -> bool:
    # So that no reply is written meanwhile.
    windows = [Thread(agent_id, user_id, "") for user_id in person.user_ids]
    with lock_windows(windows), connection.cursor() as cursor:
        ids = fetch_column(_NEXT, person.parameters(agent=agent_id, limit=BATCH))
        if not ids:
            return False
        began_at = fetch_value("SELECT now()")
        messages = list(Message.objects.filter(pk__in=ids))
        facts, users = facts_deleted_with(messages), person.user_ids
        own = users if person.agent_id is None else ()  # those of other agents stay
        erased = erase_from_prompts([*messages, *facts], without_users=own)
        redacted = redact_copies(messages, facts=facts, without_users=users)
        for table, count in (erased | redacted).items():
            progress.add_rows(table, None, count, "changed")
        delete_rows_of_messages(cursor, ids, progress.add_rows)
        delete_messages(cursor, ids, progress.add_rows)
        progress.add_messages(len(ids))
        progress.save()
    changed = redact_new_copies(messages, began_at, facts=facts, without_users=users)
    for table, count in changed.items():
        progress.add_rows(table, None, count, "changed")
    return True


def remove_rest(person: Person, progress: ErasureProgress) -> None:
    """Remove the person's rows besides messages, in one transaction."""
    with transaction.atomic(), connection.cursor() as cursor:
        for table, data in _deleted_tables():
            if table != MESSAGES:
                values = person.parameters()
                _delete(cursor, table, data, data.of_person, values, progress.add_rows)
        progress.save()


def delete_rows_of_messages(cursor: Any, ids: Sequence[UUID], add: AddRows) -> None:
    """Delete the rows that belong to messages, before the messages are deleted.

    It waits for workers that write embeddings of the messages.
    """
    cursor.execute(LOCK_EMBEDDING, {"ids": ids})
    tables = personal_tables()
    for table, data in tables.items():
        if data.derived:
            _delete(cursor, table, data, data.derived, {"ids": ids}, add)
    for table, data in tables.items():
        if data.message and table != MESSAGES:
            where = f"{data.message} = ANY(%(ids)s)"
            _delete(cursor, table, data, where, {"ids": ids}, add)


def delete_messages(cursor: Any, ids: Sequence[UUID], add: AddRows) -> None:
    """Delete messages, after the rows that belong to them."""
    data = personal_tables()[MESSAGES]
    _delete(cursor, MESSAGES, data, "id = ANY(%(ids)s)", {"ids": ids}, add)


def _delete(
    cursor: Any,
    table: str,
    data: PersonalData,
    where: str,
    values: dict[str, Any],
    add: AddRows,
) -> None:
    """Delete rows of a table, and add their number and ids to the receipt."""
    name = _name(table, data)
    if not data.key:
        cursor.execute(f"DELETE FROM {name} WHERE {where}", values)
        add(table, None, cursor.rowcount, "removed")
        return
    cursor.execute(f"DELETE FROM {name} WHERE {where} RETURNING {data.key}::text", values)
    keys = [key for (key,) in cursor.fetchall()]
    add(table, keys, len(keys), "removed")


def _deleted_tables() -> list[tuple[str, PersonalData]]:
    """Return the tables with rows of a person besides those that only messages lead to."""
    return [
        (table, data)
        for table, data in personal_tables().items()
        if data.of_person and data.on_erasure is OnErasure.DELETE
    ]


def _name(table: str, data: PersonalData) -> str:
    return f"{data.schema or tenant_connection().schema_name}.{table}"
