"""Redacts copies of erased messages in rows of other people, such as tool calls.

The lines of an erased message are replaced, together with the name of the speaker before them.
Facts that are deleted with the messages are redacted in the same way.
Prompts have no copies: `prompts` erases the references.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from django.db.models import Model

from konstruct.orchestrator.models import AnswerOptions, Escalation, ToolCall
from konstruct.orchestrator.replies import REPLIES
from konstruct.privacy.erasure.prompts import erase_from_prompts
from memory.conf import ERASED_TEXT
from memory.models import (
    ConversationItem,
    MemoryEntry,
    Message,
)
from memory.models.facts import WITHOUT_OTHER_EVIDENCE
from tenants.context import fetch_column

ERASED: Final = ERASED_TEXT
# The number of characters by which a line is recognized.
PROBE_CHARACTERS: Final = 40
# A shorter line must be complete, or follow the name of its speaker.
MIN_LINE_CHARACTERS: Final = 16
MAX_QUOTES: Final = 100


class CopyColumns(NamedTuple):
    """The columns of a table that may contain text of messages of other people."""

    model: type[Model]
    columns: tuple[str, ...]
    thread: str = "copy.thread_id"
    user: str = "copy.user_id"
    agent: str = "copy.agent_id"
    join: str = ""


COPIES: Final = (
    CopyColumns(
        AnswerOptions,
        ("history",),
        thread="reply.thread_id",
        user="reply.user_id",
        agent="reply.agent_id",
        join="JOIN memory_message AS reply ON reply.id = copy.message_id",
    ),
    CopyColumns(ToolCall, ("content", "arguments", "question", "result")),
    CopyColumns(Escalation, ("reason", "note")),
    CopyColumns(ConversationItem, ("item",)),
)
_OF_SAME_USER: Final = """
    OR ({agent}, {user}) IN (
        SELECT agent_id, user_id FROM unnest(%(agents)s::uuid[], %(same_users)s::text[])
            AS same (agent_id, user_id))
"""
_FACTS: Final = f"""
    SELECT tenant_id, memory_id, version_of, content, value FROM memory_memoryentry
    WHERE {WITHOUT_OTHER_EVIDENCE}
"""


def facts_deleted_with(messages: Sequence[Message]) -> list[MemoryEntry]:
    """Return the facts, with their versions, that are deleted with these messages."""
    ids = [message.pk for message in messages]
    return list(MemoryEntry.objects.raw(_FACTS, {"ids": ids}))


def redact_copies(
    messages: Sequence[Message],
    *,
    facts: Sequence[MemoryEntry] = (),
    without_users: Collection[str] = (),
) -> dict[str, int]:
    """Redact copies of messages in rows of other people. The messages may be deleted already.

    Args:
        messages: the messages.
        facts: the facts that are deleted with them: see `facts_deleted_with`.
        without_users: users whose rows are skipped, because they are all removed.

    Returns:
        The numbers of changed rows by table.
    """
    ids = {str(message.pk) for message in messages}
    ids |= {str(key) for fact in facts for key in (fact.pk, fact.fact_id)}
    texts = [message.content for message in messages] + [fact.content for fact in facts]
    pairs = sorted({(message.agent_id, message.user_id) for message in messages})
    firsts = {line for text in texts for line in _lines(text)[:1]}
    values = {
        "agents": [agent_id for agent_id, _ in pairs],
        "same_users": [user_id for _, user_id in pairs],
        "threads": sorted({message.thread_id for message in messages}),
        "users": [*without_users],
        "probes": sorted(
            ids
            | {line[:PROBE_CHARACTERS] for line in firsts}
            | {json.dumps(line[:PROBE_CHARACTERS], ensure_ascii=False)[1:-1] for line in firsts}
        ),
    }
    names = {" ".join((message.name or message.user_id).split()) for message in messages}
    redact = _redaction(texts, names)
    changed: dict[str, int] = {}
    for copies in COPIES:
        with_same_user = copies.model is AnswerOptions or bool(facts)
        keys = _matching_keys(copies, values, with_same_user=with_same_user)
        for row in copies.model._default_manager.filter(pk__in=keys):
            before = {column: getattr(row, column) for column in copies.columns}
            after = _redacted(before, redact)
            if after != before:
                copies.model._default_manager.filter(pk=row.pk).update(**after)
                table = copies.model._meta.db_table
                changed[table] = changed.get(table, 0) + 1
    return changed


def redact_new_copies(
    messages: Sequence[Message],
    began_at: datetime,
    *,
    facts: Sequence[MemoryEntry] = (),
    without_users: Collection[str] = (),
) -> dict[str, int]:
    """Redact copies of deleted messages in rows that workers wrote during the deletion.

    Call it after the transaction that deleted the messages. It ends the leases of all replies, so
    that workers begin them again without the messages. Replies that are stored are redacted.

    Args:
        messages: the deleted messages.
        began_at: the start of that transaction, by the clock of Postgres.
        facts: the facts that were deleted with them.
        without_users: users whose rows are skipped, because they are all removed.

    Returns:
        The numbers of changed rows by table.
    """
    REPLIES.cancel_all_attempts()
    changed = erase_from_prompts([*messages, *facts], without_users=without_users)
    replies = Message.objects.filter(in_reply_to__isnull=False, created_at__gte=began_at)
    calls = ToolCall.objects.filter(created_at__gte=began_at)
    if replies.exists() or calls.exists():
        changed |= redact_copies(messages, facts=facts, without_users=without_users)
    return changed


def quoting_messages(message: Message) -> list[str]:
    """Return ids of the user's other messages that contain the beginning of the message.

    They are not erased: a person decides about them. A short message has none.
    """
    line = next(iter(_lines(message.content)), "")[:PROBE_CHARACTERS].rstrip()
    if len(line) < MIN_LINE_CHARACTERS:
        return []
    others = Message.objects.filter(user_id=message.user_id, content__contains=line)
    quoting = others.exclude(pk=message.pk).exclude(in_reply_to=message.pk).order_by("number")
    return [str(pk) for pk in quoting.values_list("pk", flat=True)[:MAX_QUOTES]]


def _matching_keys(
    copies: CopyColumns, values: Mapping[str, Any], *, with_same_user: bool
) -> list[Any]:
    key, table = copies.model._meta.pk.column, copies.model._meta.db_table
    of_same = _OF_SAME_USER.format(agent=copies.agent, user=copies.user)
    same_user = of_same if with_same_user else ""
    columns = ", ".join(f"copy.{column}" for column in copies.columns)
    return fetch_column(
        f"SELECT copy.{key} FROM {table} AS copy {copies.join}"
        f" WHERE ({copies.thread} = ANY(%(threads)s) {same_user})"
        f" AND {copies.user} <> ALL(%(users)s)"
        " AND EXISTS (SELECT FROM unnest(%(probes)s::text[]) AS probe"
        f" WHERE strpos(concat_ws(' ', {columns}), probe) > 0)",
        values,
    )


def _redacted(row: Mapping[str, Any], redact: Callable[[str], str]) -> dict[str, Any]:
    redacted = {name: _in_texts(value, redact) for name, value in row.items()}
    if "item" in row:  # JSON in a text column
        redacted["item"] = json.dumps(
            _in_texts(json.loads(row["item"]), redact), ensure_ascii=False
        )
        return redacted if json.loads(redacted["item"]) != json.loads(row["item"]) else dict(row)
    return redacted


def _lines(text: str) -> list[str]:
    return [stripped for line in text.splitlines() if (stripped := line.strip())]


def _redaction(texts: Sequence[str], names: Collection[str]) -> Callable[[str], str]:
    """Return a function that replaces lines of these texts, with names before them, in a text."""
    lines = {line for text in texts for line in _lines(text)}
    beginnings = {
        line[: 2 * PROBE_CHARACTERS] for line in lines if len(line) >= MIN_LINE_CHARACTERS
    }

    def redact_line(line: str) -> str:
        start = min((at for probe in beginnings if (at := line.find(probe)) >= 0), default=-1)
        if start < 0:
            # A short line, or the beginning of one that was cut.
            end = line.rpartition(": ")[2].strip().rstrip("…")
            is_cut = len(end) >= MIN_LINE_CHARACTERS and any(
                probe.startswith(end) for probe in beginnings
            )
            if not end or not (is_cut or end in lines or line.strip() in lines):
                return line
            start = line.rfind(line.strip() if line.strip() in lines else end)
        before = line[:start]
        name = next((name for name in names if before.endswith(f"{name}: ")), None)
        return (before if name is None else before[: -len(name) - 2]) + ERASED

    return lambda text: "\n".join(map(redact_line, text.split("\n")))


def _in_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _in_texts(item, change) for name, item in value.items()}
    return [_in_texts(item, change) for item in value] if isinstance(value, list) else value
