"""How what is remembered is written in a prompt: one item each, with who said it and when. Pure."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import zip_longest


def fact_line(content: str) -> str:
    """An item that is known, apart from any conversation."""
    return _item(f"Fact: {content}")


def turn_line(content: str, speaker: str, said_at: datetime | None = None) -> str:
    """An item that somebody said: without its date, "yesterday" in it would mean nothing."""
    when = f"[{said_at:%A, %Y-%m-%d %H:%M}] " if said_at else ""
    return _item(f"{when}{speaker}: {content}")


def interleaved(*rankings: Iterable[str]) -> list[str]:
    """The best of each ranking, then the second of each, and so on: what is cut is cut from all."""
    nothing = object()
    return [
        item
        for items in zip_longest(*rankings, fillvalue=nothing)
        for item in items
        if isinstance(item, str)
    ]


def _item(text: str) -> str:
    # What a line break inside begins is indented, so that no memory can pose as another item.
    return "- " + "\n  ".join(_lines(text))


def _lines(text: str) -> Iterator[str]:
    yield from (line.rstrip() for line in text.strip().splitlines())
