"""Nothing waits or works for ever: tasks, locks, and what stops them."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings as django_settings
from django.db import OperationalError, connections
from psycopg.errors import LockNotAvailable

from konstruct.api.http.exceptions import problem_of
from konstruct.celery import app
from konstruct.orchestrator import messages, runner
from konstruct.orchestrator.exceptions import Busy
from konstruct.orchestrator.messages import konstruct_message
from konstruct.orchestrator.models import PendingReply
from konstruct.orchestrator.replies import queue
from konstruct.orchestrator.tasks import handle_message
from memory.models import Message
from tenants.context import connection, tenant_scope
from tenants.jobs import kind as job_kind
from tests.jobs import claimed
from tests.konstruct.conftest import MESSAGES, Program


def test_every_task_has_both_time_limits() -> None:
    """And what waits behind the longest task is not given to another worker meanwhile."""
    soft, hard = app.conf.task_soft_time_limit, app.conf.task_time_limit
    assert 0 < soft < hard
    assert hard < app.conf.broker_transport_options["visibility_timeout"]
    # An agent with tools may ask the language model five times.
    assert soft > 5 * django_settings.LLM_TIMEOUT
    for name, task in app.tasks.items():
        if not name.startswith("celery."):
            assert (task.soft_time_limit, task.time_limit) in ((None, None), (soft, hard))


def run_with(
    program: Program, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> tuple[str, PendingReply]:
    """Let the language model end in this error; return the message and its place in the outbox."""

    def fail(*args: object) -> None:
        raise error

    monkeypatch.setattr(runner, "run_agent", fail)
    sent = [program.send(text, thread_id="t").json()["id"] for text in ("One", "Two")]
    with pytest.raises(type(error)):
        handle_message(str(program.tenant.id), sent[0])
    with tenant_scope(program.tenant.id):
        # The next one of the thread is left to a task that has all its time.
        assert PendingReply.objects.get(pk=sent[1]).attempts == 0
        return sent[0], PendingReply.objects.get(pk=sent[0])


def test_a_reply_that_takes_too_long_has_failed(
    program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, row = run_with(program_a, monkeypatch, SoftTimeLimitExceeded())
    assert (row.attempts, row.begun_at, row.error_code) == (1, None, "time_limit")
    error = program_a.get(f"{MESSAGES}{sent}/").json()["error"]
    assert error["detail"] == "It took longer than a worker may take, and was stopped."


@pytest.mark.parametrize(("is_told_to_end", "counted"), [(True, 0), (False, 1)])
def test_an_attempt_that_the_end_of_the_worker_stops_does_not_count(
    program_a: Program, monkeypatch: pytest.MonkeyPatch, is_told_to_end: bool, counted: int
) -> None:
    """What raises SystemExit by itself has had its attempt."""
    monkeypatch.setattr(job_kind, "terminate_handler_fired", lambda: is_told_to_end)
    sent, row = run_with(program_a, monkeypatch, SystemExit())
    assert row.attempts == counted
    assert (row.begun_at is None) is is_told_to_end
    assert program_a.get(f"{MESSAGES}{sent}/").json()["error"] is None


def test_what_is_only_at_hand_is_not_counted(program_a: Program) -> None:
    sent = program_a.send().json()["id"]
    with tenant_scope(program_a.tenant.id):
        assert claimed(queue.REPLIES) == [UUID(sent)]
        assert claimed(queue.REPLIES) == []
        assert PendingReply.objects.get().attempts == 0


@pytest.fixture
def held(program_a: Program, transactional_db: None) -> Iterator[Callable[..., Any]]:
    """Hold a lock in another session until the test is over."""
    is_held, release = threading.Event(), threading.Event()

    def hold(lock: Callable[[Any], Any], message: Any) -> None:
        with tenant_scope(program_a.tenant.id), lock(message):
            is_held.set()
            assert release.wait(60)
        connections.close_all()

    with ThreadPoolExecutor(1) as threads:

        def start(lock: Callable[[Any], Any]) -> Any:
            sent = program_a.send().json()["id"]
            with tenant_scope(program_a.tenant.id):
                message = konstruct_message(Message.objects.get(pk=sent))
            threads.submit(hold, lock, message)
            assert is_held.wait(60)
            return message

        yield start
        release.set()


def test_who_waits_for_a_window_gives_up_in_time(
    held: Callable[..., Any], program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "WINDOW_SECONDS", 0.2)
    message = held(messages.window_lock)
    with (
        tenant_scope(program_a.tenant.id),
        pytest.raises(Busy, match=r"for 0\.2 seconds"),
        messages.window_lock(message),
    ):
        raise AssertionError("two have the lock")


def test_who_waits_for_a_thread_gives_up_in_time(
    held: Callable[..., Any], program_a: Program, settings: Any
) -> None:
    settings.CELERY_TASK_TIME_LIMIT = 0.2
    message = held(messages.thread_lock)
    with tenant_scope(program_a.tenant.id), pytest.raises(Busy):
        messages.wait_for_threads([message])


def test_postgres_ends_what_web_and_workers_wait_for(db: None) -> None:
    with connection.cursor() as cursor:
        for name in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"):
            cursor.execute(
                "SELECT setting::bigint, source FROM pg_settings WHERE name = %s", [name]
            )
            milliseconds, source = cursor.fetchone()
            assert milliseconds > 0
            assert source == "user"  # of the role, whoever connects
            if name == "idle_in_transaction_session_timeout":
                # A batch of embeddings computes inside its transaction.
                assert milliseconds > 1000 * django_settings.CELERY_TASK_TIME_LIMIT


def test_a_statement_cannot_fill_the_disk_nor_lift_the_limit(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting(name), has_parameter_privilege(name, 'SET')"
            " FROM (VALUES ('temp_file_limit')) AS limited (name)"
        )
        assert cursor.fetchone() == ("1GB", False)


def test_who_waits_for_a_lock_in_vain_is_told_to_come_again() -> None:
    error = OperationalError("canceling statement due to lock timeout")
    error.__cause__ = LockNotAvailable()
    problem = problem_of(error)
    assert (problem.status, problem.headers["Retry-After"]) == (503, "5")
    assert (problem_of(Busy("it is")).status, problem_of(Busy("it is")).headers) == (
        503,
        {"Retry-After": "1"},
    )
