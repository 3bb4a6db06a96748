"""Histories of assistants and memories: ChatGPT, ShareGPT, mem0, Zep, CSV, and JSON lines."""

import csv
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from konstruct.orchestrator.exceptions import ImportRefused
from konstruct.orchestrator.history_import import files
from konstruct.orchestrator.history_import.files import dict_of, list_of, text_of, utc_time

# Roles of other systems. Messages of the others, such as system and tool, are left out.
ROLES: Final = {
    **dict.fromkeys(("user", "human", "person", "customer"), "user"),
    **dict.fromkeys(
        ("assistant", "agent", "ai", "bot", "gpt", "chatgpt", "model", "bing", "bard", "claude"),
        "assistant",
    ),
}
_NOT_SPOKEN: Final = ("system", "tool", "function", "norole", "developer")


def transcript(source: files.Source) -> files.Found:
    """Read JSON lines with the fields of `import_history`."""
    for name in source.texts:
        for place, item in source.items(name):
            yield files.Line(place, item)


# --- ChatGPT and ShareGPT ---------------------------------------------------------------------


def chatgpt(source: files.Source) -> files.Found:
    """Read ChatGPT's conversations.json: of each conversation the path that ChatGPT shows."""
    for name in source.texts:
        if len(source.texts) == 1 or "conversations" in name.rpartition("/")[2][:14]:
            for place, conversation in source.items(name):
                yield from _chatgpt_messages(place, conversation)


def _chatgpt_messages(place: str, conversation: Any) -> files.Found:
    nodes = conversation.get("mapping") if isinstance(conversation, dict) else None
    if not isinstance(nodes, dict):
        yield files.Problem(place, "it is no conversation of ChatGPT: it has no `mapping`")
        return
    path = dict[str, Any]()
    key = text_of(conversation, "current_node")
    while key in nodes and key not in path:
        path[key] = nodes[key]
        key = text_of(nodes[key], "parent")
    if not path:
        yield files.Problem(
            place, "it has no `current_node`, so that the shown messages are unknown"
        )
    thread = text_of(conversation, "conversation_id", "id") or text_of(conversation, "title")
    time = utc_time(conversation.get("create_time"))
    for number, node in enumerate(reversed(path.values()), 1):
        message = dict_of(node, "message")
        # A message without a time has that of the one before.
        time = utc_time(message.get("create_time")) or time
        content = dict_of(message, "content")
        role = text_of(message.get("author"), "role")
        kind = text_of(content, "content_type")
        if (
            dict_of(message, "metadata").get("is_visually_hidden_from_conversation")
            or role not in ("user", "assistant")
            or kind not in ("text", "multimodal_text")
            or message.get("recipient", "all") != "all"
        ):
            continue
        parts = list_of(content, "parts")
        texts = [part if isinstance(part, str) else text_of(part, "text") for part in parts]
        if any(texts) or any(isinstance(part, dict) for part in parts):
            yield files.Row(
                f"{place} message {number}",
                "\n".join(filter(None, texts)),
                thread=thread,
                external_id=f"chatgpt:{text_of(message, 'id')}",
                role=role,
                time=time,
                media=tuple(
                    text_of(part, "content_type").removesuffix("_asset_pointer") or "a file"
                    for part in parts
                    if isinstance(part, dict) and not text_of(part, "text")
                ),
            )


def sharegpt(source: files.Source) -> files.Found:
    """Read ShareGPT's JSON or JSON lines: conversations of `from` and `value`, without times."""
    for name in source.texts:
        for number, (place, item) in enumerate(source.items(name), 1):
            turns = list_of(item, "conversations", "conversation", "messages")
            if not turns:
                yield files.Problem(
                    place, "it is no conversation of ShareGPT: it has no `conversations`"
                )
            named = text_of(item, "id", "conversation_id")
            thread = named or f"{source.title}-{number}"
            for index, turn in enumerate(turns):
                yield _role_row(
                    f"{place} message {index + 1}",
                    text_of(turn, "from", "role"),
                    text_of(turn, "value", "content", "text"),
                    thread=thread,
                    external_id=f"sharegpt:{named}/{index}" if named else None,
                )


def _role_row(place: str, role: str, text: str, **values: Any) -> files.Row | files.Problem:
    if role.lower() in _NOT_SPOKEN:
        return files.Problem(place, f"a message with the role {role}")
    if role.lower() not in ROLES and not values.get("author"):
        return files.Problem(place, f"the role {role!r} is neither a person's nor an agent's")
    return files.Row(place, text, role=ROLES.get(role.lower(), ""), **values)


# --- mem0 and Zep -----------------------------------------------------------------------------


def mem0(source: files.Source) -> files.Found:
    """Read memories of mem0, as `get_all` and exports have them: they become facts."""
    for place, item in _listed(source, "results", "memories"):
        fact = text_of(item, "memory", "data")
        if not fact:
            yield files.Problem(place, "it has no `memory`")
            continue
        categories = item.get("categories")
        yield files.Row(
            place,
            fact,
            external_id=f"mem0:{text_of(item, 'id')}" if text_of(item, "id") else None,
            user_id=text_of(item, "user_id") or None,
            time=utc_time(item.get("created_at")),
            metadata={
                **dict_of(item, "metadata"),
                **({"categories": categories} if categories else {}),
            },
            is_fact=True,
        )


def zep(source: files.Source) -> files.Found:
    """Read sessions, threads and facts (edges) of Zep, as its API returns them."""
    for place, item in _listed(source, "sessions", "threads", "edges", "facts"):
        thread = text_of(item, "thread_id", "session_id", "uuid", "id")
        user_id = text_of(item, "user_id") or None
        for number, message in enumerate(list_of(item, "messages"), 1):
            role = text_of(message, "role_type", "role")
            author = text_of(message, "role") if text_of(message, "role_type") else ""
            uuid = text_of(message, "uuid", "uuid_")
            yield _role_row(
                f"{place} message {number}",
                role,
                text_of(message, "content"),
                thread=thread,
                external_id=f"zep:{uuid}" if uuid else None,
                author=text_of(message, "name") or author,
                user_id=user_id,
                time=utc_time(message.get("created_at")) if isinstance(message, dict) else None,
            )
        facts = list_of(item, "edges", "relevant_facts", "facts")
        if not facts and not list_of(item, "messages"):
            if not text_of(item, "fact"):
                yield files.Problem(place, "it has no `messages` and no `facts`")
            facts = [item]
        for number, fact in enumerate(facts, 1):
            text = fact if isinstance(fact, str) else text_of(fact, "fact")
            known = fact if isinstance(fact, dict) else {}
            uuid = text_of(known, "uuid", "uuid_")
            if text and (known.get("invalid_at") or known.get("expired_at")):
                yield files.Problem(f"{place} fact {number}", "the fact is not valid any more")
            elif text:
                yield files.Row(
                    f"{place} fact {number}",
                    text,
                    external_id=f"zep:{uuid}" if uuid else None,
                    user_id=text_of(known, "user_id") or user_id,
                    time=utc_time(known.get("valid_at") or known.get("created_at")),
                    is_fact=True,
                )


def _listed(source: files.Source, *names: str) -> Iterator[tuple[str, Any]]:
    """Yield the objects of all texts, and those in lists with these names at the top."""
    for name in source.texts:
        for place, item in source.items(name):
            inner = list_of(item, *names)
            is_envelope = inner and "messages" not in item and isinstance(inner[0], dict)
            if not is_envelope:
                yield place, item
                continue
            for number, part in enumerate(inner, 1):
                owned = isinstance(part, dict) and "user_id" in item and "user_id" not in part
                yield (
                    f"item {number}",
                    {**part, "user_id": item["user_id"]} if owned else part,
                )


# --- CSV --------------------------------------------------------------------------------------

# The names of a column, by what it has.
COLUMNS: Final = {
    "text": ("content", "text", "message", "body"),
    "author": ("author", "name", "from", "sender", "speaker"),
    "role": ("role",),
    "user_id": ("user_id", "user"),
    "time": ("created_at", "time", "timestamp", "date", "sent_at"),
    "thread": ("thread_id", "conversation_id", "conversation", "thread", "channel"),
    "external_id": ("external_id", "message_id", "id"),
}


def table(source: files.Source, *, columns: Mapping[str, str]) -> files.Found:
    """Read CSV with a header. Columns are recognized by their names.

    Args:
        source: a file, or several.
        columns: names of columns for keys of COLUMNS, instead of the known ones.

    Raises:
        ImportRefused: it has no column of texts, or none of these names, or is not valid CSV.
    """
    for name in source.texts:
        lines = (f"{line}\n" for _, line in source.lines(name))
        header = next(lines, "")
        delimiter = max(",;\t|", key=header.count)
        begun = 1
        try:
            names = [cell.strip() for cell in next(csv.reader([header], delimiter=delimiter), [])]
            places = {
                key: names.index(column)
                for key, known in COLUMNS.items()
                for column in names
                if (column == columns[key] if key in columns else column.lower() in known)
            }
            if missing := {"text", *columns} - places.keys():
                raise ImportRefused(
                    f"{name}:1 has no column for {', '.join(sorted(missing))} (it has"
                    f" {', '.join(names)[:200]}): name the column."
                )
            reader, begun = csv.reader(lines, delimiter=delimiter, strict=True), 2
            for cells in reader:
                if cells:
                    yield _table_row(str(begun), cells, places)
                begun = reader.line_num + 2
        except csv.Error as error:
            raise ImportRefused(
                f"{name}:{begun} is not valid CSV ({error}): save it as CSV again."
            ) from error


def _table_row(
    place: str, cells: list[str], places: Mapping[str, int]
) -> files.Row | files.Problem:
    values = {key: cells[at].strip() for key, at in places.items() if at < len(cells)}
    time: datetime | None = None
    if given := values.get("time"):
        time = utc_time(given)
        if time is None:
            return files.Problem(
                place, f"{given[:40]!r} is no time such as 2026-03-14T09:30:00+01:00"
            )
    known: dict[str, Any] = {
        "thread": values.get("thread", ""),
        "external_id": values.get("external_id") or None,
        "author": values.get("author", ""),
        "user_id": values.get("user_id") or None,
        "time": time,
    }
    if values.get("role"):
        return _role_row(place, values["role"], values.get("text", ""), **known)
    return files.Row(place, values.get("text", ""), **known)
