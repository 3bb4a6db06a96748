"""Taking messages out of the traces of recalls: what other replies were given of them.

A hit is found by the message's id. A prompt, and what of it was remembered, is text. One that holds
how the message begins is removed as a whole.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from memory.models import Message, PendingEmbedding, RecallEvent
from tenants.context import connection

# So much of a message's first line is looked for; of a shorter one, the line as it stands alone.
PROBE: Final = 40
SHORT: Final = 16
MOST_QUOTES: Final = 100
_TRACES: Final = """
    SELECT event.id FROM memory_recallevent AS event
    LEFT JOIN memory_message AS reply ON reply.id = event.reply_id
    WHERE ((event.agent_id, event.user_id) IN (
             SELECT agent_id, user_id FROM memory_message WHERE id = ANY(%(ids)s))
           OR reply.thread_id = ANY(%(threads)s))
      AND EXISTS (SELECT FROM unnest(%(probes)s::text[]) AS probe WHERE strpos(
            concat(event.hits, event.cut, event.injected, event.prompt), probe) > 0)
"""
_WAITING: Final = """
    SELECT message_id FROM memory_pendingembedding
    WHERE EXISTS (SELECT FROM unnest(%(probes)s::text[]) AS probe
                  WHERE strpos(recall_trace::text, probe) > 0)
"""


def forget_in_traces(messages: Sequence[Message]) -> int:
    """Take messages that are still there out of the traces of others; how many were changed."""
    ids = {str(message.pk) for message in messages}
    lines = {line for message in messages if (line := _first_line(message.content))}
    values = {
        "ids": [message.pk for message in messages],
        "threads": sorted({message.thread_id for message in messages}),
        "probes": [*ids, *(json.dumps(line, ensure_ascii=False)[1:-1] for line in lines)],
    }
    events = RecallEvent.objects.filter(pk__in=_found(_TRACES, values))
    changed = 0
    for event in events:
        trace = {name: getattr(event, name) for name in ("hits", "cut", "injected", "prompt")}
        forgotten = _without(trace, ids, lines)
        if forgotten != trace:
            changed += RecallEvent.objects.filter(pk=event.pk).update(**forgotten)
    for waiting in PendingEmbedding.objects.filter(pk__in=_found(_WAITING, values)):
        waiting.recall_trace = _without(waiting.recall_trace or {}, ids, lines)
        waiting.save(update_fields=["recall_trace"])
    return changed


def quotes_of(message: Message) -> list[str]:
    """Ids of the user's other messages that say how this one begins, such as replies that quote it.

    They stay: for a human to judge. None are looked for of a message that begins with few words.
    """
    line = _first_line(message.content)
    if len(line) < SHORT:
        return []
    others = Message.objects.filter(user_id=message.user_id, content__contains=line)
    found = others.exclude(pk=message.pk).exclude(in_reply_to=message.pk).order_by("number")
    return [str(pk) for pk in found.values_list("pk", flat=True)[:MOST_QUOTES]]


def _found(statement: str, values: Mapping[str, Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return [pk for (pk,) in cursor.fetchall()]


def _without(trace: Mapping[str, Any], ids: set[str], lines: set[str]) -> dict[str, Any]:
    def holds(value: Any) -> bool:
        return _any_text(value, lambda text: _says(text, lines))

    hits = [_without_neighbours(hit, ids) for hit in trace["hits"] if not _is_one(hit, ids)]
    named = len(hits) < len(trace["hits"])
    return {
        **trace,
        "hits": hits,
        "cut": [each for each in trace["cut"] if not _is_one(each, ids)],
        "injected": [] if named or holds(trace["injected"]) else trace["injected"],
        "prompt": None if named or holds(trace.get("prompt")) else trace.get("prompt"),
    }


def _without_neighbours(hit: Mapping[str, Any], ids: set[str]) -> dict[str, Any]:
    turns = [turn for turn in hit.get("neighbours", ()) if not _is_one(turn, ids)]
    return {**hit, "neighbours": turns} if "neighbours" in hit else dict(hit)


def _is_one(found: Mapping[str, Any], ids: set[str]) -> bool:
    return str(found.get("message_id")) in ids


def _first_line(content: str) -> str:
    lines = (line.strip() for line in content.splitlines())
    return next((line[:PROBE].rstrip() for line in lines if line), "")


def _says(text: str, lines: Iterable[str]) -> bool:
    """Whether a text of a prompt holds one of the lines; a short one by itself, or after a name."""
    long = [line for line in lines if len(line) >= SHORT]
    if any(line in text for line in long):
        return True
    short = {line for line in lines if len(line) < SHORT}
    return bool(short) and any(
        said.strip() in short or said.rpartition(": ")[2].strip() in short
        for said in text.splitlines()
    )


def _any_text(value: Any, says: Callable[[str], bool]) -> bool:
    if isinstance(value, str):
        return says(value)
    if isinstance(value, Mapping):
        value = list(value.values())
    return isinstance(value, list) and any(_any_text(each, says) for each in value)
