"""Items of one conversation, for the sessions of frameworks."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from konstruct_client import documents
from konstruct_client.client import AsyncClient
from konstruct_client.errors import NotFound, TimedOut

MAX_ADDED, MAX_LISTED = 1_000, 50
MAX_POP_ATTEMPTS = 20


class NewItem(NamedTuple):
    """An item, and its text if it is a message of a user or an assistant."""

    item: dict[str, Any]
    role: str = ""
    text: str = ""


class Items:
    """Items of a framework in a conversation between a user and an agent."""

    def __init__(self, client: AsyncClient, *, agent: str, user_id: str, thread_id: str) -> None:
        self._conversations = client.conversations
        self._place: dict[str, Any] = {"agent": agent, "user_id": user_id, "thread_id": thread_id}

    async def newest(self, most: int | None = None) -> list[dict[str, Any]]:
        """Return the newest items, oldest first. Without a limit: all items."""
        return [each["item"] for each in reversed(await self._rows(most))]

    async def add(self, items: Sequence[NewItem]) -> None:
        """Add items, in their order."""
        told = [
            {"item": each.item, "said": {"role": each.role, "content": each.text}}
            if each.role in ("user", "assistant") and each.text.strip()
            else {"item": each.item}
            for each in items
        ]
        for start in range(0, len(told), MAX_ADDED):
            await self._conversations.add_items(told[start : start + MAX_ADDED], **self._place)

    async def pop(self) -> dict[str, Any] | None:
        """Remove the newest item and return it, None if there is none. Of two callers one gets it.

        Raises:
            TimedOut: other callers took the newest item MAX_POP_ATTEMPTS times in a row.
        """
        for _ in range(MAX_POP_ATTEMPTS):
            rows = await self._rows(1)
            if not rows:
                return None
            with contextlib.suppress(NotFound):  # another caller took it
                await self._conversations.remove_item(rows[0]["id"])
                return rows[0]["item"]
        raise TimedOut(
            f"Other callers took the newest item {MAX_POP_ATTEMPTS} times in a row: try again."
        )

    async def clear(self) -> None:
        """Remove all items."""
        await self._conversations.clear_items(**self._place)

    async def _rows(self, most: int | None) -> list[documents.Item]:
        """The newest items, newest first."""
        found: list[documents.Item] = []
        if most is not None and most <= 0:
            return found
        page = MAX_LISTED if most is None else min(most, MAX_LISTED)
        async for each in self._conversations.items(**self._place, limit=page):
            found.append(each)
            if len(found) == most:
                break
        return found
