"""How what is remembered is written in a prompt: one item each, with who said it and when. Pure."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TypeVar

T = TypeVar("T")


def item(text: str) -> str:
    """One item of a list of memories.

    What a line break inside begins is indented, so that no memory can pose as another item.
    """
    return "- " + "\n  ".join(_lines(text))


class ItemText(str):
    """The text of an item, with the line that was fitted into a budget."""

    line: str


def text_of_item(line: str) -> ItemText:
    """The text from which `item` made the line."""
    text = ItemText(line.removeprefix("- ").replace("\n  ", "\n"))
    text.line = line
    return text


def line_of(text: str) -> str:
    """The item of a text: the very line that was fitted, where the text is of one."""
    return text.line if isinstance(text, ItemText) else item(text)


def fact_line(content: str) -> str:
    """An item that is known, apart from any conversation."""
    return item(f"Fact: {content}")


def turn_line(content: str, speaker: str, said_at: datetime | None = None) -> str:
    """An item that somebody said: without its date, "yesterday" in it would mean nothing."""
    when = f"{dated(said_at)} " if said_at else ""
    return item(f"{when}{speaker}: {content}")


def moment(at: datetime) -> str:
    """A date and time in a prompt: weekday, ISO date and time in UTC."""
    return f"{at.astimezone(UTC):%A, %Y-%m-%d %H:%M}"


def dated(at: datetime) -> str:
    """The mark in front of a turn, recalled or recent, that says when it was sent."""
    return f"[{moment(at)}]"


_DATED = re.compile(r"^\[[A-Z][a-z]+day, \d{4}-\d\d-\d\d \d\d:\d\d\] ", re.MULTILINE)


def undated(text: str) -> str:
    """The text without the marks of `dated` at the beginnings of its lines."""
    return _DATED.sub("", text)


def said_by(speaker: str, content: str) -> str:
    """A turn of a conversation of several, under its speaker's name.

    What a line break inside begins is indented, so that nobody can speak in another's name.
    """
    return "\n  ".join(_lines(f"{' '.join(speaker.split())}: {content}"))


def interleaved(*rankings: Iterable[T]) -> list[T]:
    """The best of each ranking, then the second of each, and so on: what is cut is cut from all."""
    # Each by itself in a tuple, so that an empty one can stand where a ranking has ended.
    wrapped = ([(each,) for each in ranking] for ranking in rankings)
    return [
        each for rank in zip_longest(*wrapped, fillvalue=()) for entry in rank for each in entry
    ]


def _lines(text: str) -> Iterator[str]:
    yield from (line.rstrip() for line in text.strip().splitlines())
