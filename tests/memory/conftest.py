"""Fixtures that record conversations."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID

import pytest
from django.db import connections
from django.test import override_settings

from memory.conversations.short_term import append_turns
from memory.conversations.transcript import record_message
from memory.conversations.window_store import Turn
from memory.models import Message

AGENT = UUID("0a9e0000-0000-4000-8000-000000000001")
USER = "U024BE7LH"
# No server uses port 1.
UNREACHABLE_SERVER = {
    "default": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": "redis://127.0.0.1:1/0",
        "OPTIONS": {"SOCKET_CONNECT_TIMEOUT": 1, "SOCKET_TIMEOUT": 1},
    }
}


@pytest.fixture
def add_message() -> Callable[..., Message]:
    """Record one message: ``add_message(tenant.id, "text", **fields)``."""

    def record(tenant_id: UUID, content: str, **values: Any) -> Message:
        defaults: dict[str, Any] = {
            "agent_id": AGENT,
            "user_id": USER,
            "thread_id": "C1",
            "channel": "rest",
            "role": "user",
        }
        return record_message(tenant_id=tenant_id, content=content, **{**defaults, **values})[0]

    return record


@pytest.fixture
def record_exchange(add_message: Callable[..., Message]) -> Callable[..., list[Turn]]:
    """Record a message and its reply, and return them as turns of the window."""

    def record(tenant_id: UUID, question: str, answer: str, **values: Any) -> list[Turn]:
        message = add_message(tenant_id, question, **values)
        reply = add_message(tenant_id, answer, role="assistant", in_reply_to=message.id, **values)
        return [Turn.of(message), Turn.of(reply)]

    return record


@pytest.fixture
def add_exchange(record_exchange: Callable[..., list[Turn]]) -> Callable[..., list[Turn]]:
    """Record a message and its reply, and append both to the window, as the pipeline does."""

    def record(tenant_id: UUID, question: str, answer: str, **values: Any) -> list[Turn]:
        turns = record_exchange(tenant_id, question, answer, **values)
        append_turns(tenant_id, values.get("agent_id", AGENT), values.get("user_id", USER), turns)
        return turns

    return record


@pytest.fixture
def cache_away() -> Callable[[], AbstractContextManager[None]]:
    """``with cache_away():`` the cache cannot be reached."""
    return lambda: override_settings(CACHES=UNREACHABLE_SERVER)


@pytest.fixture
def run_concurrently() -> Callable[..., list[Any]]:
    """Run a function for each argument in its own thread, with its own connection."""

    def run(function: Callable[[Any], Any], arguments: list[Any]) -> list[Any]:
        def and_close(argument: Any) -> Any:
            try:
                return function(argument)
            finally:
                connections.close_all()

        with ThreadPoolExecutor(max_workers=len(arguments)) as threads:
            return list(threads.map(and_close, arguments))

    return run
