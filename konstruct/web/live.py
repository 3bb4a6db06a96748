"""Bodies that are sent from the event loop while a message waits for its reply."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Final

from konstruct.orchestrator.replies.reply_wait import Live
from konstruct.web.pool import Overloaded
from konstruct.web.texts import Texts, Watched
from konstruct.web.waiters import Waiters

# A comment of server-sent events, so that nobody on the way closes a connection that is silent.
ALIVE: Final = b": waiting\n\n"
ALIVE_SECONDS: Final = 10.0


class LiveBody:
    """A body that has no thread but for its end: the text as it is written, and then the rest."""

    def __init__(
        self,
        live: Live,
        waiters: Waiters,
        texts: Texts,
        end: Callable[[str], Awaitable[bytes]],
    ) -> None:
        self._live = live
        self._waiters = waiters
        self._texts = texts
        self._end = end

    async def read(self) -> AsyncGenerator[bytes]:
        """Yield what is to be sent, as it comes."""
        live, sent = self._live, list[str]()
        yield live.opening
        wait = self._waiters.wait(live.tenant_id, live.message_id, live.seconds)
        waited = asyncio.create_task(wait)
        try:
            with self._texts.watch(live.tenant_id, live.message_id) as watched:
                waited.add_done_callback(lambda _: watched.news.set())
                while not (waited.done() or watched.broken):
                    is_silent = await _is_silent(watched)
                    if text := watched.take():
                        sent.append(text)
                        yield live.piece(text)
                    elif is_silent:
                        yield ALIVE
        finally:
            waited.cancel()
        try:
            yield await self._end("".join(sent))
        except Overloaded:
            yield live.overloaded


async def _is_silent(watched: Watched) -> bool:
    """Wait for news, and tell whether there have been none for a while."""
    with suppress(TimeoutError):
        async with asyncio.timeout(ALIVE_SECONDS):
            await watched.news.wait()
            watched.news.clear()
            return False
    return True
