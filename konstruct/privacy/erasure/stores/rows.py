"""Removing a person's rows: messages in batches, with what belongs to them; then the rest."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from uuid import UUID

from konstruct.orchestrator.locks import window_lock
from konstruct.orchestrator.messages import Thread
from konstruct.privacy.erasure.person import OF_PERSON, Person
from konstruct.privacy.erasure.progress import ErasureProgress
from konstruct.privacy.erasure.tables import EXEMPT, RULES, Rule
from tenants import transaction
from tenants.context import connection, tenant_connection
from tenants.exceptions import KonstructError

AddRows = Callable[[str, Iterable[str] | None, int, str], None]
# Messages that are removed in one transaction, about: a message and its reply go together.
BATCH = 1000

_TABLES = """
    SELECT relname FROM pg_class
    WHERE relkind IN ('r', 'p') AND relnamespace = %s::regnamespace ORDER BY relname
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


class UnknownTable(KonstructError):
    """There is a table of which nobody has said what an erasure does with it."""


def tables_of_tenant() -> list[str]:
    """Every table of the schema that we are in, whoever made it."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLES, [tenant_connection().schema_name])
        return [name for (name,) in cursor.fetchall()]


def refuse_unknown_tables() -> None:
    """Raise UnknownTable if an erasure could miss something."""
    unknown = set(tables_of_tenant()) - {rule.table for rule in RULES} - EXEMPT.keys()
    if unknown:
        raise UnknownTable(
            f"nobody has said what an erasure does with {', '.join(sorted(unknown))}:"
            " add it to konstruct/privacy/erasure/tables.py"
        )


def count_messages(person: Person) -> int:
    """How many messages the person has at this moment."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, person.parameters())
        return int(cursor.fetchone()[0])


def remove_messages(person: Person, progress: ErasureProgress) -> None:
    """Remove all messages, and with each batch, in its transaction, what refers to it."""
    for agent_id in person.agents:
        # Ends: each batch removes messages of a person who can send no more.
        while _remove_batch(person, agent_id, progress):
            progress.report_messages()


def _remove_batch(person: Person, agent_id: UUID, progress: ErasureProgress) -> bool:
    with _windows(person, agent_id), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_NEXT, person.parameters(agent=agent_id, limit=BATCH))
        ids = [id for (id,) in cursor.fetchall()]
        if not ids:
            return False
        for rule in RULES:
            if rule.of_message:
                where = f"{rule.of_message} = ANY(%(ids)s)"
                delete(cursor, rule, where, {"ids": ids}, progress.add_rows)
        progress.add_messages(len(ids))
        progress.save()
    return True


def remove_rest(person: Person, progress: ErasureProgress) -> None:
    """Remove what is the person's besides messages, in one transaction."""
    with transaction.atomic(), connection.cursor() as cursor:
        for rule in RULES:
            if rule.where:
                delete(cursor, rule, rule.where, person.parameters(), progress.add_rows)
        progress.save()


def delete(cursor: Any, rule: Rule, where: str, values: dict[str, Any], add: AddRows) -> None:
    """Delete rows of the rule's table, and add to the receipt how many these were."""
    name = f"{rule.schema or tenant_connection().schema_name}.{rule.table}"
    if not rule.key:
        cursor.execute(f"DELETE FROM {name} WHERE {where}", values)
        add(rule.table, None, cursor.rowcount, "removed")
        return
    cursor.execute(f"DELETE FROM {name} WHERE {where} RETURNING {rule.key}::text", values)
    keys = [key for (key,) in cursor.fetchall()]
    add(rule.table, keys, len(keys), "removed")


@contextmanager
def _windows(person: Person, agent_id: UUID) -> Iterator[None]:
    """Hold the person's windows, so that no reply is written in between."""
    with ExitStack() as stack:
        for user_id in sorted(person.user_ids):
            stack.enter_context(window_lock(Thread(agent_id, user_id, "")))
        yield
