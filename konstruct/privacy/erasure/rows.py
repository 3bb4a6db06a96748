"""Deletes rows as the declarations of personal data say: of messages, and of a person."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from konstruct.api.models import IdempotencyRecord
from konstruct.privacy.erasure.person import IDS, OF_PERSON, Person
from konstruct.privacy.erasure.progress import ErasureProgress
from memory.context.recall_events import NO_ID
from memory.indexing.service import remove_from_word_index
from memory.models import IndexedMessage, MemoryEntry, Message, Posting, RecallEvent
from memory.models.recall import scope_number
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

MESSAGES: Final = Message._meta.db_table
# Workers hold these rows while they write embeddings.
LOCK_EMBEDDING: Final = (
    "SELECT FROM memory_pendingembedding WHERE message_id = ANY(%(ids)s) FOR UPDATE"
)
# Events of a source's own user are found by the user; those of others have rows of sources.
_ERASE_FROM_PROMPTS: Final = """
    UPDATE memory_recallevent SET
        sources = ARRAY(
            SELECT CASE WHEN id = ANY(%(ids)s) THEN %(no_id)s ELSE id END
            FROM unnest(sources) WITH ORDINALITY AS source (id, place) ORDER BY place
        ),
        left_out = ARRAY(
            SELECT CASE WHEN id = ANY(%(ids)s) THEN %(no_id)s ELSE id END
            FROM unnest(left_out) WITH ORDINALITY AS source (id, place) ORDER BY place
        ),
        unmatched = CASE WHEN NOT sources && %(ids)s THEN unmatched END
    WHERE user_id <> ALL(%(without)s) AND (reply_id IS NULL OR reply_id <> ALL(%(ids)s))
      AND id IN (
        SELECT id FROM memory_recallevent
        WHERE user_id = ANY(%(users)s) AND (sources && %(ids)s OR left_out && %(ids)s)
        UNION ALL
        SELECT event_id FROM memory_promptsource WHERE source_id = ANY(%(ids)s)
    )
"""
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
_CREATED: Final = f"DELETE FROM api_creation WHERE made IN ({IDS}) RETURNING made::text"


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


# --- Messages -------------------------------------------------------------------------------------


def erase_from_prompts(
    sources: Sequence[Message | MemoryEntry], *, without_users: Collection[str] = ()
) -> int:
    """Erase the references of prompts to messages and facts: one indexed statement.

    Their ids are replaced by zero, which is displayed as erased, and texts of a program in the
    prompt, which may quote any source of it, are removed. Call it before the messages are deleted,
    together with the rows of `PromptSource`; and after the commit, for prompts that were written
    meanwhile.

    Args:
        sources: the messages, and the facts that are deleted with them. Prompts of replies among
            the messages are skipped.
        without_users: users whose prompts are skipped, because they are all removed.

    Returns:
        The number of changed events.
    """
    owners = {source.pk: source.user_id for source in sources}
    owners |= {fact.fact_id: fact.user_id for fact in sources if isinstance(fact, MemoryEntry)}
    values = {
        "ids": list(owners),
        "users": sorted(filter(None, {*owners.values()} - {*without_users})),
        "without": list(without_users),
        "no_id": NO_ID,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ERASE_FROM_PROMPTS, values)
        return int(cursor.rowcount)


def delete_messages(
    messages: Sequence[Message],
    add: AddRows = lambda *_: None,
    *,
    facts: Sequence[MemoryEntry] = (),
    without_users: Collection[str] = (),
) -> None:
    """Delete messages with all rows that belong to them, in the current transaction.

    It waits for workers that write embeddings of the messages.

    Args:
        messages: the messages.
        add: counts deleted and changed rows.
        facts: facts that the caller deletes in the same transaction: prompts refer to them no more.
        without_users: see `erase_from_prompts`.
    """
    ids = {"ids": [message.pk for message in messages]}
    numbers = [message.number for message in messages]
    scopes = {scope_number(message.agent_id, message.user_id) for message in messages}
    changed = erase_from_prompts([*messages, *facts], without_users=without_users)
    add(RecallEvent._meta.db_table, None, changed, "changed")
    with connection.cursor() as cursor:
        cursor.execute(LOCK_EMBEDDING, ids)
        tables = personal_tables()
        for table, data in tables.items():
            if data.derived:
                _delete(cursor, table, data, data.derived, ids, add)
        for table, data in tables.items():
            if data.message and table != MESSAGES:
                _delete(cursor, table, data, f"{data.message} = ANY(%(ids)s)", ids, add)
        words = remove_from_word_index(numbers, scopes=[*scopes])
        for model, count in zip((Posting, IndexedMessage), words, strict=True):
            add(model._meta.db_table, None, count, "removed")
        _delete(cursor, MESSAGES, tables[MESSAGES], "id = ANY(%(ids)s)", ids, add)


# --- A person -------------------------------------------------------------------------------------


def count_messages(person: Person) -> int:
    """Return the number of the person's messages."""
    return int(fetch_value(_COUNT, person.parameters()))


def next_messages(person: Person, limit: int) -> list[Message]:
    """Return about `limit` messages of the person that are left, with their replies."""
    found = (person.parameters(agent=agent_id, limit=limit) for agent_id in person.agents)
    ids = next(filter(None, (fetch_column(_NEXT, values) for values in found)), [])
    return list(Message.objects.filter(pk__in=ids))


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


def remove_rest(person: Person, progress: ErasureProgress) -> None:
    """Remove the person's rows besides messages, in one transaction."""
    with transaction.atomic(), connection.cursor() as cursor:
        for table, data in _deleted_tables():
            if table != MESSAGES:
                values = person.parameters()
                _delete(cursor, table, data, data.of_person, values, progress.add_rows)
        progress.save()


def _delete(
    cursor: Any, table: str, data: PersonalData, where: str, values: dict[str, Any], add: AddRows
) -> None:
    """Delete rows of a table, and add their number and ids to the receipt."""
    returning = f" RETURNING {data.key}::text" if data.key else ""
    cursor.execute(f"DELETE FROM {_name(table, data)} WHERE {where}{returning}", values)
    keys = [key for (key,) in cursor.fetchall()] if data.key else None
    add(table, keys, cursor.rowcount, "removed")


def _deleted_tables() -> list[tuple[str, PersonalData]]:
    """Return the tables with rows of a person besides those that only messages lead to."""
    return [
        (table, data)
        for table, data in personal_tables().items()
        if data.of_person and data.on_erasure is OnErasure.DELETE
    ]


def _name(table: str, data: PersonalData) -> str:
    return f"{data.schema or tenant_connection().schema_name}.{table}"
