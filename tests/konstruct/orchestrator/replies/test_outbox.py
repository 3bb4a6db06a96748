"""The outbox of replies: claims, leases and retries."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connections

from konstruct.orchestrator import pipeline, replies
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from konstruct.orchestrator.tasks import handle_message
from memory.models import Message
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program, SendMessage

SECOND = timedelta(seconds=1)


@pytest.fixture
def send(program_a: Program) -> Any:
    """Accept messages of tenant A's maria, and stay in tenant A."""

    def send(content: str = "Hello", thread_id: str = "t1") -> Message:
        incoming = Incoming(
            agent_id=program_a.agent.id,
            user_id="maria",
            thread_id=thread_id,
            channel="rest",
            content=content,
        )
        return accept(incoming, tenant_id=program_a.tenant.id)[0]

    with tenant_scope(program_a.tenant.id):
        yield send


def test_a_broker_that_is_down_does_not_stop_acceptance(
    program_a: Program,
    django_capture_on_commit_callbacks: Any,
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = handle_message.app
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    monkeypatch.setattr(app, "_pool", None)
    monkeypatch.setattr(app.amqp, "_producer_pool", None)
    with django_capture_on_commit_callbacks(execute=True) as callbacks:
        response = program_a.send()
    assert (response.status_code, len(callbacks)) == (202, 1)
    assert "was not enqueued (OperationalError" in caplog.text


def test_a_thread_is_worked_on_by_one_at_a_time(
    transactional_db: None, send: SendMessage, settings: Any
) -> None:
    settings.LLM_POOL_URL = ""
    message = send()

    def in_another_process(work: Callable[[], Any]) -> Any:
        """Do the work in another thread, so on another connection."""

        def run() -> Any:
            try:
                with tenant_scope(message.tenant_id):
                    return work()
            finally:
                connections.close_all()

        with ThreadPoolExecutor(1) as threads:
            return threads.submit(run).result()

    def handle() -> bool:
        pipeline.handle(tenant_id=message.tenant_id, message_id=message.id)
        return Message.objects.filter(in_reply_to=message).exists()

    lease = replies.REPLIES.lease(message.id)
    assert lease is not None
    assert in_another_process(handle) is False
    lease.abandon()
    assert in_another_process(handle) is True


def test_threads_of_equal_looking_ids_have_lanes_of_their_own() -> None:
    agent = UUID(int=1)
    threads = [("a:b", "c"), ("a", "b:c"), ("a:b", "c "), ("a\x1f1:b", "c"), ("a", "b\x1f1:c")]
    assert len({Thread(agent, *ids).lane for ids in threads}) == len(threads)
    assert Thread(agent, "a", "b").lane == Thread(agent, "a", "b").lane
