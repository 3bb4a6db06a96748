"""OpenAI's Agents SDK: a session. Needs the extra `openai-agents`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from konstruct_client._extras import extra
from konstruct_client._items import Items, NewItem
from konstruct_client.client import AsyncClient

with extra("openai-agents"):
    from agents.items import TResponseInputItem
    from agents.memory.session import SessionABC
    from agents.memory.session_settings import (
        SessionSettings,
        coerce_session_settings,
        resolve_session_limit,
    )

TEXTS = ("input_text", "output_text", "text")


class KonstructSession(SessionABC):
    """For `Runner.run(agent, "…", session=KonstructSession(…))`.

    Items come back as they were added. The texts of users and of agents are remembered as well:
    they stand in the transcript of the conversation.

    Args:
        session_id: the conversation.
        agent: name or id of the agent that remembers. It must be there.
        user_id: the user who speaks.
        session_settings: default number of items to get; all of them by default.
    """

    def __init__(
        self,
        session_id: str,
        client: AsyncClient,
        *,
        agent: str,
        user_id: str,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or {})
        self._items = Items(client, agent=agent, user_id=user_id, thread_id=session_id)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Get the newest items, oldest first. The default number is in the settings."""
        most = resolve_session_limit(limit, self.session_settings)
        return cast("list[TResponseInputItem]", await self._items.newest(most))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items, and remember the messages of users and agents in them."""
        plain = cast("list[dict[str, Any]]", items)
        await self._items.add([NewItem(each, *_said(each)) for each in plain])

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item. Its text stays in the memory."""
        return cast("TResponseInputItem | None", await self._items.pop())

    async def clear_session(self) -> None:
        """Remove all items. Their texts stay in the memory until the conversation is erased."""
        await self._items.clear()


def _said(item: Mapping[str, Any]) -> tuple[str, str]:
    """Return the role and the text of an item; empty if it is not a message."""
    content = item.get("content")
    if item.get("type", "message") != "message" or content is None:
        return "", ""
    if not isinstance(content, str):
        texts = [part.get("text") for part in content if part.get("type") in TEXTS]
        content = "\n".join(text for text in texts if text)
    return str(item.get("role", "")), content
