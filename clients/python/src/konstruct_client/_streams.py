"""Replies that are read while they are written."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from konstruct_client import documents
from konstruct_client._calls import Call
from konstruct_client._sending import AsyncSender, Sender
from konstruct_client.errors import ConnectionFailed, problem_in


class Events:
    """Reads server-sent events line by line, and keeps their content."""

    def __init__(self) -> None:
        self.accepted: documents.Message | None = None
        """The message, after it is accepted. It is answered even if the stream is closed."""
        self.message: documents.Message | None = None
        """The message as it is at the end. Its reply counts, and not the pieces."""
        self._name, self._has_text = "", False

    def text_in(self, line: str) -> str:
        """Take a line; return the piece of the reply that it brings, mostly none.

        Raises:
            Problem: the stream ends with an error.
        """
        name, _, value = line.partition(": ")
        if name == "event":
            self._name = value
        if name != "data":
            return ""
        found = json.loads(value)
        if self._name == "error":
            raise problem_in(found)
        if self._name == "accepted":
            self.accepted = found
        elif self._name == "message":
            self.message = found
            # Without pieces, the reply comes as a whole.
            return str((found["reply"] or {}).get("content", "")) if not self._has_text else ""
        elif self._name == "text":
            self._has_text = True
            return str(found["text"])
        return ""

    def require_end(self) -> None:
        """Raise ConnectionFailed if the stream broke off."""
        if self.message is None:
            asked = f"; ask for message {self.accepted['id']}" if self.accepted else ""
            raise ConnectionFailed(f"the stream broke off{asked}")


class Stream(Events):
    """A reply, piece by piece: iterate over it once."""

    def __init__(self, sender: Sender, call: Call[Any]) -> None:
        super().__init__()
        self._sender, self._call = sender, call

    def __iter__(self) -> Iterator[str]:
        """Yield the reply's text as it is written."""
        for line in self._sender.lines(self._call):
            if text := self.text_in(line):
                yield text
        self.require_end()


class AsyncStream(Events):
    """A reply, piece by piece: iterate over it once, by `async for`."""

    def __init__(self, sender: AsyncSender, call: Call[Any]) -> None:
        super().__init__()
        self._sender, self._call = sender, call

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the reply's text as it is written."""
        async for line in self._sender.lines(self._call):
            if text := self.text_in(line):
                yield text
        self.require_end()
