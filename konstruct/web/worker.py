"""gunicorn's worker: its arbiter starts, watches and replaces processes, uvicorn serves in them."""

from typing import Any, ClassVar

from uvicorn_worker import UvicornWorker

from konstruct.web.protocol import Protocol

# Less than gunicorn's graceful_timeout, after which it kills.
FINISH_SECONDS = 8
# asyncio takes as many new connections at a time as it is told the backlog is. A process that took
# a whole burst would do all of its work, while the others have nothing to do.
ACCEPTED_AT_ONCE = 1


class Worker(UvicornWorker):
    """A process with an event loop."""

    CONFIG_KWARGS: ClassVar[dict[str, Any]] = {
        "loop": "asyncio",
        "http": Protocol,
        "ws": "none",
        "lifespan": "on",
        "backlog": ACCEPTED_AT_ONCE,
        "timeout_graceful_shutdown": FINISH_SECONDS,
        # The handler writes the log, see konstruct/web/handler.py.
        "access_log": False,
        "server_header": False,
        # Who the client is, is who connects: a header is whatever a client sends.
        "proxy_headers": False,
    }

    async def callback_notify(self) -> None:
        """Tell the arbiter that this process is alive: at the start, and every few seconds."""
        await super().callback_notify()
        # asyncio has told the kernel its backlog, too.
        for socket in self.sockets:
            socket.listen(self.cfg.backlog)
