"""Fixtures of the tests of OpenAI's interface."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

from konstruct.interfaces.openai import views
from konstruct.orchestrator import pipeline
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from memory.models import Message
from tenants.context import required_tenant_id
from tests.konstruct.api.seed_data import answer
from tests.konstruct.conftest import Program

CHAT = "/v1/chat/completions"


def answer_before_responding(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
    """Let a worker answer each message before the functions of a module wait for its reply."""

    def after_work(respond: Callable[..., Any]) -> Callable[..., Any]:
        def worked(view: Any, message_id: Any, *arguments: Any, **options: Any) -> Any:
            pipeline.handle(tenant_id=required_tenant_id(), message_id=message_id)
            return respond(view, message_id, *arguments, **options)

        return worked

    for name in ("stream_events", "respond_when_settled"):
        monkeypatch.setattr(module, name, after_work(getattr(module, name)))


@dataclass
class Chat:
    """A client of chat completions. Each new message is answered immediately."""

    program: Program
    accepted: list[Message] = field(default_factory=list)
    answers: bool = True

    def ask(self, *contents: str, headers: dict[str, str] | None = None, **parameters: Any) -> Any:
        """Request a completion. The texts are alternately of the user and of the assistant."""
        roles = ("user", "assistant")
        messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(contents)]
        body = {"model": "ada", "messages": messages, "user": "maria", **parameters}
        return self.program.post(CHAT, body, headers=headers or {})

    def says(self, *contents: str, **parameters: Any) -> str:
        """Return the text of a completion."""
        response = self.ask(*contents, **parameters)
        assert response.status_code == 200, response.content
        return str(response.json()["choices"][0]["message"]["content"])

    def accept(self, incoming: Incoming, **options: Any) -> tuple[Message, bool]:
        message, created = accept(incoming, **options)
        if created:
            self.accepted.append(message)
            if self.answers:
                answer(self.program, message.id, f"{len(self.accepted)}. {message.content}!")
        return message, created


@pytest.fixture
def chat(program_a: Program, monkeypatch: pytest.MonkeyPatch) -> Chat:
    """Chat with ada, in tenant A."""
    made = Chat(program_a)
    monkeypatch.setattr(views, "accept", made.accept)
    monkeypatch.setattr(views, "WAIT_SECONDS", 0)
    return made


@pytest.fixture
def other_chat(chat: Chat) -> Callable[[Program], Chat]:
    """The same client with another key."""
    return lambda program: Chat(program, chat.accepted)
