"""One shape for a turn, whatever gave it: {"role", "content", …} with its content as plain text."""

import json
import math
from collections.abc import Mapping
from typing import Any

# LangChain's message types, in the words of the chat format that everybody speaks.
_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "function": "tool"}


def as_turn(message: Any) -> dict[str, Any]:
    """A turn from a chat message (a mapping) or a LangChain message (an object); a new dict."""
    if isinstance(message, Mapping):
        role = _role(message.get("role") or message.get("type"))
        return {**message, "role": role, "content": text_of(message)}
    role = _role(getattr(message, "role", None) or getattr(message, "type", None))
    turn = {"role": role, "content": text_of(message)}
    for key in ("id", "name", "tool_call_id"):
        if value := getattr(message, key, None):
            turn[key] = value
    return turn


def _role(said: Any) -> str:
    """The role in the chat format's words; the user's where none is given."""
    return _ROLES.get(said, said) if isinstance(said, str) and said else "user"


def text_of(item: Any) -> str:
    """The text of a string, or of what has a `content`: a string, or parts as chat models use."""
    if isinstance(item, str):
        return item
    content = attribute_of(item, "content")
    if content is None:
        return ""
    if isinstance(content, list):
        return "\n".join(filter(None, map(_part, content)))
    return content if isinstance(content, str) else json.dumps(content, default=str)


def score_of(item: Any) -> float | None:
    """The score of what has a finite number as its `score`, else None."""
    score = attribute_of(item, "score")
    return float(score) if isinstance(score, int | float) and math.isfinite(score) else None


def attribute_of(item: Any, name: str) -> Any:
    """A value of a mapping, or an attribute of an object; None where there is none."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def writable(text: str) -> str:
    """The text without what neither Postgres nor UTF-8 has: NUL, and halves of surrogate pairs.

    The cache keeps any turn that a program appends; a language model's API and the trace of a
    prompt do not.
    """
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _part(part: Any) -> str:
    """The text of one part of a message; an image or a tool call has none."""
    if isinstance(part, str):
        return part
    return str(part.get("text") or "") if isinstance(part, Mapping) else ""
