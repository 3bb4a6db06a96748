"""Streamed responses: made by one thread as fast as it can, sent as fast as the client takes them.

A thread that made each piece when the client had taken the one before would belong to the slowest
client. What is made goes into a temporary file, and the event loop sends it from there.
"""

import asyncio
import itertools
import os
import tempfile
import threading
from collections.abc import AsyncGenerator, Iterator
from typing import IO

# A body up to this size is no stream: it is sent at once, without a file.
AT_ONCE = 1024 * 1024
PIECE = 64 * 1024


class CutShort(Exception):
    """The rest of the body could not be made."""


def whole_body(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes] | None]:
    """Return a short body; or nothing, and an iterator over all of a long one."""
    read: list[bytes] = []
    size = 0
    for piece in pieces:
        read.append(piece)
        size += len(piece)
        if size > AT_ONCE:
            return b"", itertools.chain(read, pieces)
    return b"".join(read), None


class Stream:
    """A body on its way from a thread, which calls `write`, to the event loop, which reads it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._news = asyncio.Event()
        self._size = 0
        self._ended = False
        self._failed = False
        self._given_up = False
        self._file: IO[bytes] | None = None
        self._sides_left = 0
        self._leaving = threading.Lock()

    def write(self, pieces: Iterator[bytes]) -> None:
        """Write all of it, until the end or until nobody wants it any more."""
        try:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by the side that is last)
            for piece in pieces:
                if self._given_up:
                    break
                self._file.write(piece)
                self._file.flush()
                self._loop.call_soon_threadsafe(self._grown, len(piece))
        except BaseException:
            self._failed = True
            raise
        finally:
            self._loop.call_soon_threadsafe(self._end)
            self._leave()

    async def read(self) -> AsyncGenerator[bytes]:
        """Yield what is written, as it comes. Raises CutShort if the writer fails."""
        offset = 0
        # Ends: when the writer ends or fails. It waits for news between two turns.
        while True:
            while self._file is not None and offset < self._size:
                piece = os.pread(self._file.fileno(), PIECE, offset)
                offset += len(piece)
                yield piece
            if self._ended and self._failed:
                raise CutShort
            if self._ended:
                return
            self._news.clear()
            await self._news.wait()

    def give_up(self) -> None:
        """Read no more, which lets the writer stop."""
        self._given_up = True
        self._leave()

    def _leave(self) -> None:
        """Close the file when both sides have left it."""
        with self._leaving:
            self._sides_left += 1
            if self._sides_left == 2 and self._file is not None:
                self._file.close()

    def _grown(self, size: int) -> None:
        self._size += size
        self._news.set()

    def _end(self) -> None:
        self._ended = True
        self._news.set()
