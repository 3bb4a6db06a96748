"""Connections: uvicorn's HTTP/1.1, with limits on how long a client may keep one without progress.

uvicorn closes a connection that is idle between two requests, and leaves one alone that has begun
a request, or does not take its response. Those cost no thread, but sockets are limited as well.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# For the line and the headers of a request, from the connection's opening or their first byte.
HEADER_SECONDS = 15
# For the client to take at least something of what is to be sent.
WRITE_SECONDS = 30


class Protocol(H11Protocol):
    """One connection."""

    _headers_due: asyncio.TimerHandle | None = None
    _write_due: asyncio.TimerHandle | None = None
    _unsent = 0

    def connection_made(self, transport: Any) -> None:
        """Begin with a connection; expect headers on it."""
        super().connection_made(transport)
        # Whenever anything is left to send, `pause_writing` is called.
        transport.set_write_buffer_limits(high=0)
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        """Take what has come; stop the clock when the headers are complete."""
        cycle = self.cycle
        super().data_received(data)
        if self.cycle is not cycle:
            self._headers_due = _cancelled(self._headers_due)
        elif self._headers_due is None and (cycle is None or cycle.response_complete):
            self._expect_headers()

    def pause_writing(self) -> None:
        """Something is left to send: the client has some time to take it."""
        super().pause_writing()
        self._expect_progress()

    def resume_writing(self) -> None:
        """Everything was sent."""
        super().resume_writing()
        self._write_due = _cancelled(self._write_due)

    def connection_lost(self, exc: Exception | None) -> None:
        """End with the connection."""
        super().connection_lost(exc)
        self._headers_due = _cancelled(self._headers_due)
        self._write_due = _cancelled(self._write_due)

    def shutdown(self) -> None:
        """The process is to end: let callers wait no longer, and send what there is to say."""
        super().shutdown()
        if stop_waiting := self.app_state.get("stop_waiting"):
            stop_waiting()

    def _expect_headers(self) -> None:
        self._headers_due = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

    def _expect_progress(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._write_due = self.loop.call_later(WRITE_SECONDS, self._look_for_progress)

    def _look_for_progress(self) -> None:
        if self.transport.get_write_buffer_size() < self._unsent:
            self._expect_progress()
        else:
            self.transport.abort()


def _cancelled(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Stop a timer; return what is in its place: none."""
    if timer is not None:
        timer.cancel()
    return None
