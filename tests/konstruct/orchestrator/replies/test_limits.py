"""Time limits: of tasks, locks, and statements."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.conf import settings as django_settings
from django.db import connections

from konstruct.orchestrator import messages
from konstruct.orchestrator.exceptions import Busy
from konstruct.orchestrator.messages import Thread
from tenants.context import connection, tenant_scope
from tests.konstruct.conftest import Program


def test_wait_for_a_window_has_a_timeout(
    program_a: Program, transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "WINDOW_LOCK_TIMEOUT_SECONDS", 0.2)
    thread, others_thread = Thread(program_a.agent.id, "maria", "t"), threading.Event()
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
