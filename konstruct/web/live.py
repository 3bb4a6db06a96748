"""Bodies that are sent from the event loop while a message waits for its reply."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

from konstruct.orchestrator.replies.reply_wait import Live
from konstruct.web.pool import Overloaded
from konstruct.web.waiters import Waiters

# A comment of server-sent events, so that nobody on the way closes a connection that is silent.
ALIVE: Final = b": waiting\n\n"
ALIVE_SECONDS: Final = 10.0


class LiveBody:
    """A body that has no thread but for its end."""

    def __init__(
        self, live: Live, waiters: Waiters, end: Callable[[str], Awaitable[bytes]]
    ) -> None:
        self._live = live
        self._waiters = waiters
        self._end = end

    async def read(self) -> AsyncGenerator[bytes]:
        """Yield what is to be sent, as it comes."""
        live = self._live
        yield live.opening
        waited = asyncio.create_task(
            self._waiters.wait(live.tenant_id, live.message_id, live.seconds)
        )
        try:
            while not (await asyncio.wait({waited}, timeout=ALIVE_SECONDS))[0]:
                yield ALIVE
        finally:
            waited.cancel()
        try:
            yield await self._end("")
        except Overloaded:
            yield live.overloaded
