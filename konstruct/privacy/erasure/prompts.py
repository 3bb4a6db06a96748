"""Erases messages and facts from the prompts of replies that stay: one indexed statement a batch.

A prompt refers to its sources. Their ids are replaced by zero, which is displayed as erased, and
texts of a program in the prompt, which may quote any source of it, are removed.
"""

from collections.abc import Collection, Sequence
from typing import Final

from memory.context.recall_events import NO_ID
from memory.models import MemoryEntry, Message, RecallEvent
from tenants.context import connection

# Events of a source's own user are found by the user; those of others have rows of sources.
_ERASE: Final = """
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


def erase_from_prompts(
    sources: Sequence[Message | MemoryEntry], *, without_users: Collection[str] = ()
) -> dict[str, int]:
    """Erase the references of prompts to messages and facts.

    Call it before the messages are deleted, together with the rows of `PromptSource`; and after the
    commit, for prompts that were written meanwhile.

    Args:
        sources: the messages, and the facts that are deleted with them. Prompts of replies among
            the messages are skipped.
        without_users: users whose prompts are skipped, because they are all removed.

    Returns:
        The number of changed rows by table.
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
        cursor.execute(_ERASE, values)
        changed = cursor.rowcount
    return {RecallEvent._meta.db_table: changed} if changed else {}
