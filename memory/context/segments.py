"""Texts of a prompt as segments: literals, and references to parts of the prompt's sources. Pure.

`Splitter.split` finds the sources in a text by exact matching; `join` makes the same text again. A
prompt changes the texts of its sources in known ways: it cuts them, with a mark, indents their
lines, and writes dates and names before them. What is neither a source nor one of these additions
is unmatched: the text of a program, such as the turns that a chat completion brings.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from memory.conf import ERASED_PART
from memory.context.chat import CONTEXT_NOTICE, CONTEXT_OPENING, EARLIER, KNOWN, REPLACED
from memory.context.tokens import DATA_HEADING, TRUNCATION_MARK

# A segment, as JSON: a literal; the number of a source, whose whole content it is; a negative
# number for another field of a source, see `_FIELDS`; [source, start, end]; or [n], the n-th
# unmatched text of the event.
Segment = str | int | list[int]
_FIELDS: Final = ("name", "user_id", "time")

MARKS: Final = (TRUNCATION_MARK, "…")
# The texts that a prompt adds to its sources, and nothing that a person has written.
_OWN_TEXTS: Final = (
    f"{CONTEXT_OPENING}\n{CONTEXT_NOTICE}\n",
    f"{DATA_HEADING}\n",
    *MARKS,
    *(
        KNOWN.strip(),
        EARLIER.strip(),
        REPLACED.strip(),
        "Fact:",
        "user:",
        "assistant:",
        "Assistant:",
    ),
    *("\n  ", "\n- ", "\n", "- ", ' ("', '")', ":", " "),
)
_OWN: Final = re.compile("|".join(map(re.escape, _OWN_TEXTS)))
_DATE: Final = re.compile(r"\[[A-Z][a-z]+day, \d{4}-\d\d-\d\d \d\d:\d\d\]")
_NEXT_BOUNDARY: Final = re.compile("|".join(map(re.escape, (*MARKS, "\n"))))
_WORD: Final = re.compile(r"\w")
_TEXT: Final = re.compile(r"\S")
# A shorter match must be a complete line.
MIN_PART: Final = 24
_PROBES: Final = (32, 16, 8, 4, 2, 1)
MIN_PROBE: Final = 8
# A turn has a label, a date and a name before it.
MAX_ADDITIONS: Final = 6
# How often all sources are searched for what follows a mark.
MAX_SEARCHES: Final = 64


@dataclass(frozen=True, slots=True)
class SourceText:
    """The texts of one source of a prompt."""

    content: str
    name: str = ""
    """The speaker's name, as a prompt writes it."""
    user_id: str = ""
    time: str = ""
    """The date before a turn, as a prompt writes it."""
    parts: tuple[tuple[int, int], ...] = ()
    """Start and end of quotes."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """A name or a date: the content after it decides its source."""

    field: str
    text: str


class Splitter:
    """Splits the texts of one prompt.

    Args:
        sources: in the order in which the prompt has them. Of equal texts the next one is taken.
    """

    def __init__(self, sources: Sequence[SourceText]) -> None:
        self._sources = sources
        self._starts: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._whole: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        self._ends: list[list[int]] = []
        self._names: dict[str, tuple[str, int]] = {}
        self._searches = MAX_SEARCHES
        for number, source in enumerate(sources):
            self._ends.append(
                sorted({*_line_ends(source.content), *(end for _, end in source.parts)})
            )
            if TRUNCATION_MARK not in source.content:
                self._whole[source.content].append((number, 0, len(source.content)))
            for start in {0, _next_text(source.content, 0), *(start for start, _ in source.parts)}:
                if start < len(source.content):
                    self._starts[source.content[start]].append((number, start))
            for field in ("user_id", "name"):
                if text := getattr(source, field):
                    self._names.setdefault(text, (field, number))
        self._longest_names = sorted(self._names, key=len, reverse=True)

    def split(self, text: str, unmatched: list[str]) -> list[Segment]:
        """Return the segments of a text; append its unmatched parts to `unmatched`."""
        found: list[Segment | _Pending] = []
        last: tuple[int, int] | None = None
        position = 0
        # Ends: each iteration consumes at least one character.
        while position < len(text):
            if match := self._content_at(text, position, last, found):
                number, start, end = match
                self._settle(found, number)
                is_whole = (start, end) == (0, len(self._sources[number].content))
                found.append(number if is_whole else [number, start, end])
                last, position = (number, end), position + end - start
            elif pending := self._addition_at(text, position):
                found.append(pending)
                position += len(pending.text)
                if pending.field == "name":
                    found.append(":")
                    position += 1
            elif own := _OWN.match(text, position):
                found.append(own[0])
                position = own.end()
            else:
                boundary = _NEXT_BOUNDARY.search(text, position + 1)
                end = boundary.start() if boundary else len(text)
                self._settle(found, None)
                found.append([len(unmatched)])
                unmatched.append(text[position:end])
                position = end
        self._settle(found, None)
        return list(_merged(found))

    def _content_at(
        self,
        text: str,
        position: int,
        last: tuple[int, int] | None,
        before: Sequence[Segment | _Pending],
    ) -> tuple[int, int, int] | None:
        """Return source, start and end of the longest part of a source at this position.

        Of equally long ones the source with the name and the date before it, or else the next one.
        """
        starts: Iterable[tuple[int, int]] = self._next_lines(*last) if last else ()
        matches = list(self._matches(text, position, starts))
        if not matches:  # most texts end with all of a content, the longest match
            matches = self._whole.get(text[position:], [])
        if not matches:
            matches = list(self._matches(text, position, self._starts.get(text[position], ())))
        if not matches and _follows_mark(before):
            matches = list(self._rest_at(text, position, last))
        additions = [
            segment.text
            for segment in islice(reversed(before), MAX_ADDITIONS)
            if isinstance(segment, _Pending)
        ]
        after = last[0] if last else -1

        def fitness(match: tuple[int, int, int]) -> tuple[int, int, bool, int]:
            number, start, end = match
            source = self._sources[number]
            fitting = sum(text in (source.name, source.user_id, source.time) for text in additions)
            return (end - start, fitting, number > after, -number)

        return max(matches, key=fitness, default=None)

    def _matches(
        self, text: str, position: int, starts: Iterable[tuple[int, int]]
    ) -> Iterator[tuple[int, int, int]]:
        for number, start in starts:
            if size := self._match_size(text, position, number, start):
                yield number, start, start + size

    def _next_lines(self, number: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the next line of a source behind a line of it, with and without its indent."""
        content = self._sources[number].content
        if start := _next_text(content, end) if end < len(content) else 0:
            yield number, start
            yield number, content.rfind("\n", end, start) + 1 or start

    def _match_size(self, text: str, position: int, number: int, start: int) -> int:
        """Return the length of the part from `start`, or of its beginning; 0 if it is no match."""
        size = _common_size(text, position, self._sources[number].content, start)
        # The longest complete line, or quote, or else a part of a cut line.
        ends = self._ends[number]
        place = bisect_right(ends, start + size)
        complete = ends[place - 1] - start if place else 0
        # The mark begins with a space, as the rest of the source may do.
        cut = text.find(
            TRUNCATION_MARK, position + max(complete, 0), position + size + len(TRUNCATION_MARK)
        )
        size = size if cut < 0 else cut - position
        if size > complete and (size >= MIN_PART or _is_marked(text, position + size)):
            return size
        return complete if complete > 0 and not _cuts_word(text, position + complete) else 0

    def _rest_at(
        self, text: str, position: int, last: tuple[int, int] | None
    ) -> Iterator[tuple[int, int, int]]:
        """Yield the rest of a source behind a mark, first that of the source before the mark."""
        numbers = [last[0]] if last else []
        if self._searches > 0:
            self._searches -= 1
            numbers += range(len(self._sources))
        for probe in _PROBES:
            beginning, newline, _ = text[position : position + probe].partition("\n")
            # A few characters are in any source.
            for number in numbers if probe >= MIN_PROBE else numbers[:1]:
                content = self._sources[number].content
                after = last[1] if last and last[0] == number else 0
                # A short end of a line is in many words.
                start = content.find(beginning + newline, after)
                start = content.find(beginning, after) if start < 0 else start
                if beginning and start >= 0:
                    size = _common_size(text, position, content, start)
                    is_end = text[position + size : position + size + 1] in ("", "\n")
                    if size >= MIN_PART or is_end or start + size in self._ends[number]:
                        yield number, start, start + size
                        return

    def _addition_at(self, text: str, position: int) -> _Pending | None:
        if date := _DATE.match(text, position):
            return _Pending("time", date[0])
        for name in self._longest_names:
            if text.startswith(f"{name}:", position):
                return _Pending("name", name)
        return None

    def _settle(self, found: list[Segment | _Pending], number: int | None) -> None:
        """Replace the names and dates before a content by references to its source.

        Those of another source refer to the first one with the name; other dates are literals.
        """
        for place in range(len(found) - 1, -1, -1):
            segment = found[place]
            if isinstance(segment, int | list):
                break
            if isinstance(segment, str):
                continue
            source = None if number is None else self._sources[number]
            fields = ("time",) if segment.field == "time" else ("name", "user_id")
            same = [name for name in fields if source and getattr(source, name) == segment.text]
            if same and number is not None:
                found[place] = _field_segment(number, same[0])
            elif segment.field == "time":
                found[place] = segment.text
            else:
                field, first = self._names[segment.text]
                found[place] = _field_segment(first, field)


def split_own(text: str, own_texts: Iterable[str], unmatched: list[str]) -> list[Segment]:
    """Return the segments of a text that consists of texts of the agent, as literals."""
    sources = [SourceText(own) for own in own_texts if own]
    parts = Splitter(sources).split(text, unmatched)
    return list(
        _merged(
            part
            if isinstance(part, str) or (isinstance(part, list) and len(part) == 1)
            else _source_text(part, sources)
            for part in parts
        )
    )


def join(
    segments: Iterable[Segment],
    sources: Sequence[SourceText | None],
    unmatched: Sequence[str] | None,
) -> str:
    """Return the text of segments.

    Args:
        segments: of `Splitter.split`.
        sources: with None for each that does not exist any more.
        unmatched: the unmatched texts of the event; None if they were erased.
    """
    return "".join(
        segment
        if isinstance(segment, str)
        else (ERASED_PART if unmatched is None else unmatched[segment[0]])
        if isinstance(segment, list) and len(segment) == 1
        else _source_text(segment, sources)
        for segment in segments
    )


def _source_text(segment: Any, sources: Sequence[SourceText | None]) -> str:
    start: int | None = None
    end: int | None = None
    field = "content"
    if isinstance(segment, list):
        number, start, end = segment
    elif segment < 0:
        number, place = divmod(-segment - 1, len(_FIELDS))
        field = _FIELDS[place]
    else:
        number = segment
    source = sources[number]
    return ERASED_PART if source is None else str(getattr(source, field))[start:end]


def _field_segment(number: int, field: str) -> int:
    return -(number * len(_FIELDS) + _FIELDS.index(field)) - 1


def _merged(found: Iterable[Any]) -> Iterator[Segment]:
    """Yield the segments with adjacent literals as one."""
    literal = ""
    for segment in found:
        if isinstance(segment, str):
            literal += segment
            continue
        if literal:
            yield literal
            literal = ""
        yield segment
    if literal:
        yield literal


def _line_ends(content: str) -> Iterator[int]:
    """Yield the ends of the lines of a text, without spaces at their ends, and of the text."""
    position = 0
    for line in content.splitlines(keepends=True):
        if stripped := line.rstrip():
            yield position + len(stripped)
        position += len(line)
    yield position


def _next_text(content: str, position: int) -> int:
    """Return the position of the next character that is no space."""
    found = _TEXT.search(content, position)
    return found.start() if found else len(content)


def _common_size(text: str, position: int, content: str, start: int) -> int:
    """Return the length of the common beginning of two texts from these positions on."""
    size, step = 0, 32
    longest = min(len(text) - position, len(content) - start)
    # Ends: the step doubles while the texts are equal, and is halved to zero after that.
    while step:
        end = min(size + step, longest)
        if end > size and text.startswith(content[start + size : start + end], position + size):
            size, step = end, step * 2
        elif step == 1 or size == longest:
            return size
        else:
            step //= 2
    return size


def _follows_mark(before: Sequence[Any]) -> bool:
    """Return whether the last segment is a mark, apart from spaces and line breaks."""
    last = islice(reversed(before), MAX_ADDITIONS)
    return next((part for part in last if not isinstance(part, str) or part.strip()), None) in MARKS


def _is_marked(text: str, position: int) -> bool:
    return position == len(text) or any(text.startswith(mark, position) for mark in MARKS)


def _cuts_word(text: str, position: int) -> bool:
    """Return whether a position is between two characters of one word."""
    return bool(_WORD.match(text, position) and _WORD.match(text, position - 1))
