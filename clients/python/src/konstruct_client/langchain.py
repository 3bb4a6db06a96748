"""LangChain: a chat's history. Needs the extra `langchain`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from uuid import uuid4

from konstruct_client._extras import extra
from konstruct_client.client import Client
from konstruct_client.errors import KonstructError, TimedOut

with extra("langchain"):
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

ROLES = {"human": "user", "ai": "assistant"}


class KonstructChatMessageHistory(BaseChatMessageHistory):
    """A conversation of a user with an agent: its transcript, which the agent's recall searches.

    It stores the texts of people and of models. Other messages, such as calls of
    tools, are refused: keep those in a graph's state.

    Args:
        agent: name or id of the agent of the conversation. It must exist.
        session_id: the conversation.
    """

    def __init__(self, client: Client, *, agent: str, user_id: str, session_id: str) -> None:
        self._konstruct = client
        self._agent, self._user_id, self._session_id = agent, user_id, session_id

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # read from the server
        """All messages, oldest first."""
        turns = self._konstruct.conversations.transcript(
            agent=self._agent, user_id=self._user_id, thread_id=self._session_id, limit=200
        )
        kinds = {"user": HumanMessage, "assistant": AIMessage}
        return [kinds[turn["role"]](content=turn["content"], id=turn["id"]) for turn in turns]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages.

        Raises:
            ValueError: a message has no text, or is neither a person's nor a model's. None is kept.
        """
        lines = list(_lines(messages))
        if not lines:
            return
        answer = self._konstruct.messages.import_history(
            lines,
            agent=self._agent,
            user_id=self._user_id,
            thread_id=self._session_id,
            # Equal texts are separate messages.
            idempotency_key=str(uuid4()),
        )
        if answer["invalid"]:
            wrong = next(each for each in answer["results"] if each["status"] == "invalid")
            raise KonstructError(f"message {wrong['index']} could not be kept: {wrong['error']}")

    def clear(self, *, timeout: float = 60) -> None:
        """Erase the conversation, for good. It needs a key with the scope `erase`.

        Raises:
            TimedOut: the result did not come within this many seconds.
        """
        asked = self._konstruct.conversations.erase(
            agent=self._agent, user_id=self._user_id, thread_id=self._session_id
        )
        end = time.monotonic() + timeout
        while self._konstruct.erasures.get(asked["id"])["state"] != "done":
            if time.monotonic() > end:
                raise TimedOut(f"the erasure {asked['id']} is not done yet")
            time.sleep(0.5)


def _lines(messages: Sequence[BaseMessage]) -> Iterator[dict[str, str]]:
    for message in messages:
        text = str(message.text)
        if message.type not in ROLES or not text.strip() or getattr(message, "tool_calls", None):
            raise ValueError(f"only texts of people and of models are kept, not {message!r:.200}")
        yield {"role": ROLES[message.type], "content": text}
