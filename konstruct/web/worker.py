"""gunicorn's worker with an event loop: uvicorn serves."""

from typing import Any, ClassVar

from uvicorn_worker import UvicornWorker

# Connections and running requests of a process: above it uvicorn answers 503. A connection costs a
# socket and some memory.
MAX_CONNECTIONS = 8000
# gunicorn kills a worker after its graceful_timeout, which is longer.
SHUTDOWN_TIMEOUT_SECONDS = 8
# asyncio accepts as many connections at a time as its backlog. A process that accepted a whole
# burst would do all of its work, while the other processes are idle.
MAX_ACCEPTED_AT_ONCE = 1


class Worker(UvicornWorker):
    """A process with an event loop."""

    CONFIG_KWARGS: ClassVar[dict[str, Any]] = {
        "loop": "asyncio",
        "http": "h11",
        "ws": "none",
        "lifespan": "on",
        "backlog": MAX_ACCEPTED_AT_ONCE,
        "limit_concurrency": MAX_CONNECTIONS,
        "timeout_graceful_shutdown": SHUTDOWN_TIMEOUT_SECONDS,
        # The application writes the access log.
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
