"""Conversations from which facts are extracted, and a language model that answers with facts."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from konstruct.orchestrator.extraction import fact_requests, runs
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.models import ExtractionCursor
from memory.conversations.transcript import record_message
from memory.models import Message
from tests import database
from tests.konstruct.conftest import Program
from tests.servers.llm import Answer, LLMServer

SetAnswer = Callable[..., None]

AddMessage = Callable[..., Message]


@pytest.fixture
def program(program_a: Program, llm_server: LLMServer, settings: Any) -> Iterator[Program]:
    """A program of tenant A whose agent extracts facts, without a review."""
    settings.LLM_POOL_URL, settings.LLM_API = llm_server.url, "pool"
    fact_requests.supported_formats.clear()
    agent = program_a.agent
    agent.extracts_facts, agent.fact_review = True, "none"
    with database.inside(program_a.tenant):
        agent.save()
        yield program_a


@pytest.fixture
def add_message(program: Program) -> Callable[..., Message]:
    """Record a message of an idle conversation, and enqueue its extraction."""

    def add_message(content: str, **values: Any) -> Message:
        defaults: dict[str, Any] = {
            "agent_id": program.agent.id,
            "user_id": "maria",
            "thread_id": "t1",
            "channel": "rest",
            "role": "user",
            "name": "Maria",
            "created_at": timezone.now() - timedelta(days=1),
        }
        message, _ = record_message(
            tenant_id=program.tenant.id, content=content, **{**defaults, **values}
        )
        runs.enqueue(program.tenant.id, [Thread.of(message)])
        return message

    return add_message


@pytest.fixture
def answer(llm_server: LLMServer) -> Callable[..., None]:
    """Make the language model answer the next request with these facts, or with a text."""

    def answer(*facts: dict[str, Any] | str, **usage: int) -> None:
        text = facts[0] if facts and isinstance(facts[0], str) else json.dumps({"facts": facts})
        body: dict[str, Any] = {"content": text}
        if usage:
            body["usage"] = usage
        llm_server.answers.append(Answer(body))

    return answer


def fact(value: str, quote: str, **fields: Any) -> dict[str, Any]:
    """Return a fact of an answer, by default Maria's home city."""
    return {
        "quote": quote,
        "subject": "Maria",
        "slot": "home_city",
        "multi": False,
        "value": value,
        "fact": f"Maria lives in {value}.",
        "valid_from": None,
        "supersedes": None,
        **fields,
    }


def cursor_id() -> UUID:
    """Return the id of the only cursor."""
    return ExtractionCursor.objects.get().pk
