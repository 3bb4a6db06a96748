"""Hooks: a channel that pushes its replies gets every change, in the same transaction."""

from collections.abc import Iterator
from typing import Any

import pytest

from konstruct.orchestrator import replies
from konstruct.orchestrator.messages import KonstructMessage
from konstruct.orchestrator.models import PendingReply
from konstruct.orchestrator.pipeline.accept import Incoming, accept, retry_reply
from memory.models import Message
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program
from tests.konstruct.orchestrator.conftest import handle
from tests.servers.llm import Answer, LLMServer

CHANNEL = "recorded"


class Recorder:
    """A hook that records the state of the message at each call."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.breaks = False

    def on_change(self, message: KonstructMessage) -> None:
        if self.breaks:
            raise RuntimeError("the hook broke")
        pending = PendingReply.objects.filter(pk=message.id).first()
        failed = pending is not None and pending.failed_at is not None
        self.told.append("answered" if pending is None else "failed" if failed else "waiting")

    def on_partial_reply(self, message: KonstructMessage) -> None:
        """The language model of these tests answers at once."""


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(replies, "_hooks", {})
    replies.register(CHANNEL, recorder)
    return recorder


@pytest.fixture
def message(program_a: Program, llm_server: LLMServer, settings: Any) -> Iterator[Message]:
    """Create a message of the recorded channel."""
    settings.LLM_POOL_URL = llm_server.url
    incoming = Incoming(
        agent_id=program_a.agent.id,
        user_id="maria",
        thread_id="t1",
        channel=CHANNEL,
        content="Hello",
    )
    with tenant_scope(program_a.tenant.id):
        yield accept(incoming, tenant_id=program_a.tenant.id)[0]


def test_hook_is_called_when_a_reply_fails_and_is_retried(
    message: Message, hook: Recorder, llm_server: LLMServer
) -> None:
    llm_server.answers = [Answer({}, status=401)]
    handle(message)
    retry_reply(message.id, tenant_id=message.tenant_id)
    handle(message)
    assert hook.told == ["failed", "waiting", "answered"]


def test_a_reply_does_not_count_as_delivered_if_its_hook_could_not_note_it(
    message: Message, hook: Recorder
) -> None:
    hook.breaks = True
    with pytest.raises(RuntimeError, match="the hook broke"):
        handle(message)
    assert PendingReply.objects.filter(pk=message.id).exists()
    hook.breaks = False
    PendingReply.objects.update(due_at="2000-01-01T00:00:00Z")
    handle(message)
    assert hook.told == ["answered"]
    assert Message.objects.filter(in_reply_to=message).count() == 1


def test_a_channel_has_one_hook(hook: Recorder) -> None:
    with pytest.raises(ValueError, match="'recorded' has a hook already"):
        replies.register(CHANNEL, Recorder())
