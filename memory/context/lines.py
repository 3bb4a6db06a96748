"""How what is remembered is written in a prompt: one item each, with who said it and when. Pure."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import zip_longest
from typing import TypeVar

T = TypeVar("T")

_NOTHING = object()


def item(text: str) -> str:
    """One item of a list of memories.

    What a line break inside begins is indented, so that no memory can pose as another item.
    """
    return "- " + "\n  ".join(_lines(text))


def fact_line(content: str) -> str:
    """An item that is known, apart from any conversation."""
    return item(f"Fact: {content}")


def turn_line(content: str, speaker: str, said_at: datetime | None = None) -> str:
    """An item that somebody said: without its date, "yesterday" in it would mean nothing."""
    when = f"[{said_at:%A, %Y-%m-%d %H:%M}] " if said_at else ""
    return item(f"{when}{speaker}: {content}")


def interleaved(*rankings: Iterable[T]) -> list[T]:
    """The best of each ranking, then the second of each, and so on: what is cut is cut from all."""
    return [
        each
        for rank in zip_longest(*rankings, fillvalue=_NOTHING)
        for each in rank
        if each is not _NOTHING
    ]


def _lines(text: str) -> Iterator[str]:
    yield from (line.rstrip() for line in text.strip().splitlines())
