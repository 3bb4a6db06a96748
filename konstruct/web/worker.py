"""gunicorn's worker with an event loop: uvicorn serves, with time limits for connections.

uvicorn closes a connection that is idle between two requests, but not one that has begun a request
or does not read its response. Those take no thread, but sockets are limited as well.
"""

import asyncio
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn_worker import UvicornWorker

# Limit for the request line and headers, from the opening of the connection or the first byte on.
HEADER_TIMEOUT_SECONDS = 15
# Limit for a client to read some part of the response.
WRITE_TIMEOUT_SECONDS = 30
# gunicorn kills a worker after its graceful_timeout, which is longer.
SHUTDOWN_TIMEOUT_SECONDS = 8
# asyncio accepts as many connections at a time as its backlog. A process that accepted a whole
# burst would do all of its work, while the other processes are idle.
MAX_ACCEPTED_AT_ONCE = 1


class _Connection(h11.Connection):
    def next_event(self) -> Any:
        """Refuse other versions than 1.x: of HTTP/2, the rest would be a second request."""
        event = super().next_event()
        if isinstance(event, h11.Request) and not event.http_version.startswith(b"1."):
            raise h11.RemoteProtocolError(f"HTTP/{event.http_version.decode()} is not supported")
        return event


class Protocol(H11Protocol):
    """One connection, with private attributes of uvicorn: requirements pin its exact version."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = _Connection(h11.SERVER)

    _headers_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _unsent_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """Start the timer for headers."""
        super().connection_made(transport)
        # `pause_writing` is called whenever data is left to send.
        transport.set_write_buffer_limits(high=0)
        self._start_headers_timer()

    def data_received(self, data: bytes) -> None:
        """Stop the timer when the headers are complete."""
        cycle = self.cycle
        super().data_received(data)
        if self.cycle is not cycle:
            self._headers_timer = _cancel(self._headers_timer)
        elif self._headers_timer is None and (cycle is None or cycle.response_complete):
            self._start_headers_timer()

    def pause_writing(self) -> None:
        """Start the timer for writing."""
        super().pause_writing()
        self._start_write_timer()

    def resume_writing(self) -> None:
        """Stop the timer for writing."""
        super().resume_writing()
        self._write_timer = _cancel(self._write_timer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        super().connection_lost(exc)
        self._headers_timer = _cancel(self._headers_timer)
        self._write_timer = _cancel(self._write_timer)

    def shutdown(self) -> None:
        """Wake the requests that wait for replies, so that the process can stop."""
        super().shutdown()
        if stop_waiting := self.app_state.get("stop_waiting"):
            stop_waiting()

    def _start_headers_timer(self) -> None:
        self._headers_timer = self.loop.call_later(HEADER_TIMEOUT_SECONDS, self.transport.abort)

    def _start_write_timer(self) -> None:
        self._unsent_bytes = self.transport.get_write_buffer_size()
        self._write_timer = self.loop.call_later(WRITE_TIMEOUT_SECONDS, self._check_progress)

    def _check_progress(self) -> None:
        if self.transport.get_write_buffer_size() < self._unsent_bytes:
            self._start_write_timer()
        else:
            self.transport.abort()


def _cancel(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Cancel a timer. Return None, the new value of its attribute."""
    if timer is not None:
        timer.cancel()
    return None


class Worker(UvicornWorker):
    """A process with an event loop."""

    CONFIG_KWARGS: ClassVar[dict[str, Any]] = {
        "loop": "asyncio",
        "http": Protocol,
        "ws": "none",
        "lifespan": "on",
        "backlog": MAX_ACCEPTED_AT_ONCE,
        "timeout_graceful_shutdown": SHUTDOWN_TIMEOUT_SECONDS,
        # The handler writes the access log.
        "access_log": False,
        "server_header": False,
        # Clients may send any header.
        "proxy_headers": False,
    }

    async def callback_notify(self) -> None:
        """Notify the arbiter that this process is alive: at the start, and every few seconds."""
        await super().callback_notify()
        # asyncio has set the kernel's backlog to its own, too.
        for socket in self.sockets:
            socket.listen(self.cfg.backlog)
