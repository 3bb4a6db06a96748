"""Microsoft's Agent Framework: memory as a context provider, and a history of each session.

Needs the extra `agent-framework`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

from konstruct_client._batches import import_all
from konstruct_client._extras import extra
from konstruct_client._items import Items, NewItem
from konstruct_client.client import AsyncClient
from konstruct_client.errors import KonstructError

with extra("agent-framework"):
    from agent_framework import (
        AgentSession,
        ContextProvider,
        HistoryProvider,
        Message,
        SessionContext,
    )

OPENING = "Relevant context from past conversations:"


class KonstructContextProvider(ContextProvider):
    """Adds matching memories before an agent's run, and stores the messages after it.

    Args:
        agent: name or id of the agent that remembers. It must be there.
        user_id: the user who speaks.
        top_k: maximum number of messages, and of facts, to add.
        keep: whether messages are stored; False with a `KonstructHistoryProvider`, which does.
    """

    def __init__(
        self,
        client: AsyncClient,
        *,
        agent: str,
        user_id: str,
        top_k: int = 5,
        keep: bool = True,
        source_id: str = "konstruct",
    ) -> None:
        super().__init__(source_id)
        self._konstruct, self._agent, self._user_id = client, agent, user_id
        self._top_k, self._keep = top_k, keep

    async def before_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add memories that match the agent's input."""
        query = "\n".join(line["content"] for line in _lines(context.input_messages))
        if not query:
            return
        facts = await self._konstruct.facts.search(
            query[:8_000], agent=self._agent, user_id=self._user_id, limit=self._top_k
        )
        said = await self._konstruct.memories.search(
            query[:8_000], agent=self._agent, user_id=self._user_id, top_k=self._top_k
        )
        known = [f"- Fact: {each['content']}" for each in facts["results"]]
        known += [
            f"- [{each['created_at']}] {each['name'] or each['role']}: {each['content']}"
            for each in said["results"]
        ]
        if known:
            context.extend_messages(self, [Message("user", ["\n".join([OPENING, *known])])])

    async def after_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Store the messages of the user and of the agent, under the session's id."""
        answers = context.response.messages if context.response else []
        lines = [*_lines(context.input_messages), *_lines(answers)]
        if lines and self._keep:
            await import_all(
                self._konstruct,
                lines,
                agent=self._agent,
                user_id=self._user_id,
                thread_id=context.session_id or session.session_id,
                # Equal texts are separate messages.
                idempotency_key=str(uuid4()),
            )


class KonstructHistoryProvider(HistoryProvider):
    """The history of each session, whole: messages come back as they were saved.

    The texts of users and agents are remembered as well: they stand in the transcript of the
    conversation that is named as the session.

    Args:
        agent: name or id of the agent that remembers. It must be there.
        user_id: the user who speaks.
        options: those of `HistoryProvider`, such as `store_context_messages`.
    """

    def __init__(
        self,
        client: AsyncClient,
        *,
        agent: str,
        user_id: str,
        source_id: str = "konstruct_history",
        **options: Any,
    ) -> None:
        super().__init__(source_id, **options)
        self._konstruct, self._agent, self._user_id = client, agent, user_id

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Get all messages of a session, oldest first.

        Raises:
            KonstructError: another framework keeps its items under this session's id.
        """
        items = await self._items(session_id).newest()
        try:
            return [Message.from_dict(each) for each in items]
        except (TypeError, ValueError, KeyError) as error:
            raise KonstructError(
                f"session_id={session_id!r} has items that are no messages of this framework:"
                " another one keeps its own there. Take an id that is this session's alone"
            ) from error

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Add messages to a session's."""
        await self._items(session_id).add(
            [NewItem(each.to_dict(), str(each.role), each.text) for each in messages]
        )

    def _items(self, session_id: str | None) -> Items:
        if not session_id:
            raise ValueError(
                "a history belongs to a session: run with session=agent.create_session()"
            )
        return Items(
            self._konstruct, agent=self._agent, user_id=self._user_id, thread_id=session_id
        )


def _lines(messages: Sequence[Message]) -> Iterator[dict[str, str]]:
    for message in messages:
        if message.role in ("user", "assistant") and message.text.strip():
            yield {"role": message.role, "content": message.text}
