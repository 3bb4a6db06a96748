"""An answer of a language model that comes as a stream of events, as OpenAI's API has it."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from konstruct.llm.completions import MOST_CALLS, storable
from konstruct.llm.exceptions import LLMReplyInvalid, LLMUnavailable

MEDIA_TYPE = "text/event-stream"
_DONE = "[DONE]"


class Text:
    """The text of an answer as it comes.

    `tell` gets what will be part of the reply whatever follows: not the white space around it.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._held_back: list[str] = []
        self.was_told = False

    def add(self, piece: str) -> None:
        """Take some more of it."""
        text = storable(piece)
        told = text.rstrip()
        rest = text[len(told) :]
        if not told:
            self._held_back.append(rest)
            return
        self._tell("".join([*self._held_back, told]) if self.was_told else told.lstrip())
        self.was_told = True
        self._held_back = [rest]


def read_stream(pieces: Iterable[bytes], text: Text, *, most_bytes: int, longest: int) -> Any:
    """Return the whole answer as the same API has it without a stream.

    Args:
        most_bytes: of one event.
        longest: characters of the answer.

    Raises LLMReplyInvalid for what is longer, or is no such stream, and LLMUnavailable for an
    answer that breaks off.
    """
    said: list[str] = []
    calls: dict[int, dict[str, Any]] = {}
    length, is_whole = 0, False
    usage: Any = None
    reason: Any = None
    for data in _events(pieces, most_bytes):
        if data == _DONE:
            is_whole = True
            break
        event = _event(data)
        usage = event.get("usage") or usage
        choice = _choice(event)
        delta = choice.get("delta")
        if isinstance(delta, Mapping):
            content = delta.get("content")
            if isinstance(content, str) and content:
                said.append(content)
                text.add(content)
            length += (
                len(data) if _add_calls(calls, delta.get("tool_calls")) else len(content or "")
            )
        if length > longest:
            raise LLMReplyInvalid(
                "The language model's answer is too long.",
                detail=f"It has more than the {longest:,} characters of LLM_MAX_REPLY_CHARACTERS.",
            )
        reason = choice.get("finish_reason") or reason
        is_whole = is_whole or reason is not None
    if not is_whole:
        raise LLMUnavailable("The language model's answer broke off.")
    message = {"content": "".join(said), "tool_calls": [calls[place] for place in sorted(calls)]}
    return {"choices": [{"message": message, "finish_reason": reason}], "usage": usage}


def _events(pieces: Iterable[bytes], most_bytes: int) -> Iterator[str]:
    """Yield the data of each event; it has one line of it, as this API has."""
    line = bytearray()
    for piece in pieces:
        first, *rest = piece.split(b"\n")
        line += first
        for following in rest:
            if line.startswith(b"data:"):
                yield line[5:].decode("utf-8", "replace").strip()
            line = bytearray(following)
        if len(line) > most_bytes:
            raise LLMReplyInvalid(
                "The language model's answer is too long.",
                detail=f"An event of its stream has more than {most_bytes:,} bytes.",
            )
    if line.startswith(b"data:"):
        yield line[5:].decode("utf-8", "replace").strip()


def _event(data: str) -> Mapping[str, Any]:
    """An event; {} for one that is no object."""
    try:
        event = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise LLMReplyInvalid(
            "The language model's answer cannot be read: it is not JSON.",
            detail=f"An event of its stream is {data[:300]!r}.",
        ) from error
    if isinstance(event, Mapping) and event.get("error"):
        raise LLMUnavailable(
            "The language model's answer broke off.", detail=f"It said {data[:300]!r}."
        )
    return event if isinstance(event, Mapping) else {}


def _choice(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first choice of an event, {} for an event without one."""
    choices = event.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else {}


def _add_calls(calls: dict[int, dict[str, Any]], deltas: Any) -> bool:
    """Add what a delta says of calls of tools, each of which has a place; whether it says any."""
    if not isinstance(deltas, list) or not deltas:
        return False
    for delta in deltas:
        place = delta.get("index", 0) if isinstance(delta, Mapping) else None
        if not isinstance(place, int) or not 0 <= place < MOST_CALLS:
            continue
        call = calls.setdefault(place, {"id": None, "function": {"name": "", "arguments": ""}})
        call["id"] = call["id"] or delta.get("id")
        function = delta.get("function")
        for name in ("name", "arguments"):
            more = function.get(name) if isinstance(function, Mapping) else None
            if isinstance(more, str):
                call["function"][name] += more
    return True
