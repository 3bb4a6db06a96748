"""The outbox of replies: claims, leases and retries."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings as django_settings
from django.db import connections

from konstruct.orchestrator import messages, pipeline, replies
from konstruct.orchestrator.exceptions import Busy
from konstruct.orchestrator.models import PendingReply
from konstruct.orchestrator.pipeline.accept import retry_reply
from konstruct.orchestrator.tasks import handle_message
from memory.models import Message
from tenants.context import connection, tenant_scope
from tests.konstruct.conftest import Program, SendMessage
from tests.konstruct.orchestrator.conftest import handle
from tests.servers.llm import Answer, LLMServer


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
    transactional_db: None, send_message: SendMessage
) -> None:
    message = send_message(handled=False)

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
    assert len({messages.Thread(agent, *ids).lane for ids in threads}) == len(threads)
    assert messages.Thread(agent, "a", "b").lane == messages.Thread(agent, "a", "b").lane


CHANNEL = "recorded"


class Recorder:
    """A hook that records the state of the message at each call."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.breaks = False

    def on_change(self, message: messages.KonstructMessage) -> None:
        if self.breaks:
            raise RuntimeError("the hook broke")
        pending = PendingReply.objects.filter(pk=message.id).first()
        failed = pending is not None and pending.failed_at is not None
        self.told.append("answered" if pending is None else "failed" if failed else "waiting")

    def on_partial_reply(self, message: messages.KonstructMessage) -> None:
        """The language model of these tests answers at once."""


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(replies, "_hooks", {})
    replies.register(CHANNEL, recorder)
    return recorder


@pytest.fixture
def message(send_message: SendMessage) -> Message:
    """Create a message of the recorded channel."""
    return send_message(channel=CHANNEL, handled=False)


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


def test_wait_for_a_window_has_a_timeout(
    program_a: Program, transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "WINDOW_LOCK_TIMEOUT_SECONDS", 0.2)
    thread, others_thread = messages.Thread(program_a.agent.id, "maria", "t"), threading.Event()
    release = threading.Event()

    def hold() -> None:
        try:
            with tenant_scope(program_a.tenant.id), messages.lock_windows([thread]):
                others_thread.set()
                assert release.wait(60)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads, tenant_scope(program_a.tenant.id):
        threads.submit(hold)
        assert others_thread.wait(60)
        other = replace(thread, user_id="john")
        with messages.lock_windows([other]):
            pass
        with (
            pytest.raises(Busy, match=r"for 0\.2 seconds"),
            messages.lock_windows([other, thread]),
        ):
            raise AssertionError("two have the lock")
        release.set()


def test_role_of_the_application_has_postgres_timeouts(db: None) -> None:
    with connection.cursor() as cursor:
        for name in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"):
            cursor.execute(
                "SELECT setting::bigint, source FROM pg_settings WHERE name = %s", [name]
            )
            milliseconds, source = cursor.fetchone()
            assert milliseconds > 0
            assert source == "user"  # of the role, for every connection
            if name == "idle_in_transaction_session_timeout":
                # A batch of embeddings computes inside its transaction.
                assert milliseconds > 1000 * django_settings.TASK_TIME_LIMIT


def test_a_statement_cannot_fill_the_disk_nor_lift_the_limit(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting(name), has_parameter_privilege(name, 'SET')"
            " FROM (VALUES ('temp_file_limit')) AS limited (name)"
        )
        assert cursor.fetchone() == ("1GB", False)
