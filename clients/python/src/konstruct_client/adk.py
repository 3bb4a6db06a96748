"""Google's Agent Development Kit: a memory service. Needs the extra `adk`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from konstruct_client._batches import import_all
from konstruct_client._extras import extra
from konstruct_client.client import AsyncClient
from konstruct_client.errors import NotFound

with extra("adk"):
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions.session import Session
    from google.genai import types

FACT = "fact:"


class KonstructMemoryService(BaseMemoryService):
    """Imports the messages of sessions, and searches messages and facts by meaning.

    An event is known by its id, so that a session may be added as often as it grows. What has just
    been added is found once it is indexed, usually within seconds.

    Args:
        agent: name or id of the agent that remembers; by default the one that is named as the app.
            It must be there.
        top_k: at most so many messages and so many facts are found.
    """

    def __init__(self, client: AsyncClient, *, agent: str | None = None, top_k: int = 5) -> None:
        self._konstruct, self._agent, self._top_k = client, agent, top_k

    async def add_session_to_memory(self, session: Session) -> None:
        """Import the messages of a session."""
        await self.add_events_to_memory(
            app_name=session.app_name,
            user_id=session.user_id,
            events=session.events,
            session_id=session.id,
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Import the messages of some events."""
        thread_id = session_id or user_id
        target = {"agent": self._agent or app_name, "user_id": user_id, "thread_id": thread_id}
        await import_all(self._konstruct, list(_lines(events, thread_id)), **target)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep facts about the user."""
        for memory in memories:
            if text := _text(memory.content):
                await self._konstruct.facts.create(
                    text,
                    agent=self._agent or app_name,
                    user_id=user_id,
                    metadata={**(custom_metadata or {}), **memory.custom_metadata} or None,
                )

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Search messages and facts that answer the query."""
        agent, most = self._agent or app_name, self._top_k
        facts = await self._konstruct.facts.search(query, agent=agent, user_id=user_id, limit=most)
        said = await self._konstruct.memories.search(
            query, agent=agent, user_id=user_id, top_k=most
        )
        known = [
            _entry(FACT + each["memory_id"], each["content"], "", each["valid_from"], {})
            for each in facts["results"]
        ]
        return SearchMemoryResponse(
            memories=known
            + [
                _entry(
                    each["message_id"],
                    each["content"],
                    each["name"] or each["role"],
                    each["created_at"],
                    {"session_id": each["thread_id"]},
                )
                for each in said["results"]
            ]
        )

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Delete a fact. To erase messages, use `erasures`."""
        if not memory_id:
            return
        if not memory_id.startswith(FACT):
            raise NotImplementedError("a message is no fact: ask for its erasure")
        try:
            await self._konstruct.facts.delete(memory_id.removeprefix(FACT))
        except NotFound:
            return  # it does not exist any more


def _lines(events: Sequence[Event], thread_id: str) -> Iterator[dict[str, Any]]:
    for event in events:
        if text := _text(event.content):
            yield {
                "external_id": f"{thread_id}/{event.id}"[:255],
                "role": "user" if event.author == "user" else "assistant",
                "name": event.author,
                "content": text,
                "created_at": datetime.fromtimestamp(event.timestamp, timezone.utc),
            }


def _text(content: types.Content | None) -> str:
    parts = (content.parts or []) if content else []
    return "\n".join(part.text for part in parts if part.text and not part.thought).strip()


def _entry(
    key: str, text: str, author: str, at: str, custom_metadata: dict[str, Any]
) -> MemoryEntry:
    return MemoryEntry(
        id=key,
        content=types.Content(
            role="user" if author == "user" else "model", parts=[types.Part(text=text)]
        ),
        author=author or None,
        timestamp=at,
        custom_metadata=custom_metadata,
    )
