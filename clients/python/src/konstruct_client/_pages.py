"""Lists, which come in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Generic, TypeVar

from konstruct_client._calls import Call, Page
from konstruct_client._sending import AsyncSender, Sender

T = TypeVar("T")


class Pages(Generic[T]):
    """A list: iterating over it asks for one page after the other. Each iteration begins anew."""

    def __init__(self, sender: Sender, first: Call[Page[T]]) -> None:
        self._sender, self._first = sender, first

    def __iter__(self) -> Iterator[T]:
        """Yield the rows of all pages."""
        for page in self.pages():
            yield from page.results

    def pages(self) -> Iterator[Page[T]]:
        """Yield the pages."""
        call: Call[Page[T]] | None = self._first
        while call:
            page = self._sender.send(call)
            yield page
            call = _following(call, page)


class AsyncPages(Generic[T]):
    """A list: `async for` asks for one page after the other. Each iteration begins anew."""

    def __init__(self, sender: AsyncSender, first: Call[Page[T]]) -> None:
        self._sender, self._first = sender, first

    async def __aiter__(self) -> AsyncIterator[T]:
        """Yield the rows of all pages."""
        async for page in self.pages():
            for row in page.results:
                yield row

    async def pages(self) -> AsyncIterator[Page[T]]:
        """Yield the pages."""
        call: Call[Page[T]] | None = self._first
        while call:
            page = await self._sender.send(call)
            yield page
            call = _following(call, page)


def _following(call: Call[Page[T]], page: Page[T]) -> Call[Page[T]] | None:
    if page.cursor is None:
        return None
    return replace(call, query={**call.query, "cursor": page.cursor})
