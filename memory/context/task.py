"""The task of a prompt: a description, with which memory is searched, and further data. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from memory.context import tokens
from memory.context.chat import list_item
from memory.exceptions import InvalidArgument

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
        """Return the task in at most `room` tokens.

        Texts that are too long are cut in the middle, with a mark, the longest first. Data for
        which no readable line fits is named in a last line, as far as there is room.
        """
        whole = self.text
        if tokens.count_up_to(whole, room) <= room:
            return FittedTask(whole)
        names = [name for name, _ in self.data]
        if not names:
            return FittedTask(tokens.cut(self.description, room), (DESCRIPTION,))
        lines = self._lines()
        kept = min(len(lines), max(room // MIN_LINE_TOKENS - 2, 0))
        if kept < len(lines):
            lines = [*lines[:kept], _omission_line(names[kept:])]
        parts = [self.description, *lines]
        # Each line ends with a line break. The heading has two more.
        free = room - len(parts) - tokens.count(DATA_HEADING) - 3
        sizes = [tokens.count_up_to(part, max(free, 0)) for part in parts]
        level = tokens.even_limit(sizes, max(free, 0))
        # Ends: each iteration lowers the level by at least one, and at 0 the text is cut.
        while True:
            pieces = [tokens.cut(part, level) for part in parts]
            text = _join(pieces[0], pieces[1:])
            if (excess := tokens.count(text) - room) <= 0:
                break
            if not level:
                text = tokens.cut(text, room)
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


def _omission_line(names: Sequence[str]) -> str:
    listed = ", ".join(name[:40] for name in names[:MAX_LISTED_NAMES])
    more = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
    return list_item(f"{tokens.TRUNCATION_MARK.strip()} {listed}{more}")
