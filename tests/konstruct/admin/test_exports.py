"""Exports of lists: the job, the single download, and everything that ends an export."""

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.db.models import F
from django.test import Client
from django.utils import timezone

from konstruct.orchestrator.identities.erasure_requests import (
    request_erasure,
    request_message_erasure,
)
from konstruct.privacy.erasure import erasing, messages, person
from konstruct.privacy.erasure.messages import apply_rules
from konstruct.web.application import Application
from memory.models import Message
from tenants.admin import exports
from tenants.audit.access_log import Actor
from tenants.audit.models import EXPORTS, ActorKind, ListExport, ListExportPart, RetentionRule
from tenants.context import tenant_scope
from tests import database
from tests.konstruct.admin.exporting import add_messages, download, request_export, write
from tests.konstruct.conftest import Browser, Program

MESSAGES = "/admin/memory/message/"
EVA = Actor(ActorKind.PERSON, "1", "eva")


@pytest.fixture
def program(program_a: Program) -> Program:
    """Tenant A with ten messages of Maria."""
    add_messages(program_a, *map(str, range(10)))
    return program_a


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each part of a file have one row."""
    monkeypatch.setattr(exports, "PART_BYTES", 1)


def page(client: Client, export_id: UUID) -> str:
    answer = client.get(f"/admin/exports/{export_id}/")
    assert answer.status_code == 200
    return answer.text


def stored(program: Program) -> tuple[int, int, int]:
    """Return the numbers of exports, of parts of files, and of jobs."""
    with tenant_scope(program.tenant.id):
        return (ListExport.objects.count(), ListExportPart.objects.count(), EXPORTS.jobs().count())


def test_the_page_of_an_export_waits_then_downloads_once(
    program: Program, admin: Client, small_parts: None
) -> None:
    export_id = request_export(admin, MESSAGES, "?role__exact=user")
    waiting = page(admin, export_id)
    assert "A worker begins in a moment." in waiting
    assert 'hx-trigger="every 1s"' in waiting
    assert admin.get(f"/admin/exports/{export_id}/download/").status_code == 302
    write(admin, export_id)
    assert stored(program) == (1, 11, 1)
    ready = page(admin, export_id)
    assert "10 rows" in ready
    assert "data-download" in ready
    assert "every 1s" not in ready
    # A request for its head alone does not use up the download.
    assert admin.head(f"/admin/exports/{export_id}/download/").status_code == 302
    assert download(admin, export_id).count("\n") == 11
    assert stored(program) == (1, 0, 1)
    done = page(admin, export_id)
    assert "The file was downloaded" in done
    assert f"{MESSAGES}?role__exact=user" in done
    assert admin.get(f"/admin/exports/{export_id}/download/").status_code == 302


@pytest.mark.django_db(transaction=True)
def test_a_web_process_sends_one_part_after_the_other_again_after_a_lost_connection(
    program: Program, admin: Client, small_parts: None
) -> None:
    export_id = request_export(admin, MESSAGES)
    write(admin, export_id)
    cookie = admin.cookies.output(attrs=[], header="", sep=";").strip()
    address = f"/admin/exports/{export_id}/download/"
    scope = {
        "type": "http", "method": "GET", "path": address, "raw_path": address.encode(),
        "query_string": b"", "http_version": "1.1", "client": ("127.0.0.1", 1),
        "headers": [(b"host", b"tenant-a.localhost"), (b"cookie", cookie.encode())],
    }  # fmt: skip
    sent: list[Any] = []
    application = Application()

    async def request(*, leaves: bool) -> None:
        has_left = asyncio.Event()
        received = [{"type": "http.request", "body": b"", "more_body": False}]
        sent.clear()

        async def receive() -> Any:
            if received:
                return received.pop()
            await has_left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)
            if leaves and message.get("body"):
                has_left.set()
                await asyncio.Future()

        await asyncio.wait_for(application(dict(scope), receive, send), 60)

    asyncio.run(request(leaves=True))
    assert [message.get("body", b"").count(b"\n") for message in sent] == [0, 1]
    assert stored(program) == (1, 11, 1)
    asyncio.run(request(leaves=False))
    threads = application.handler.threads
    together = threading.Barrier(len(threads._threads))
    list(threads.map(lambda _: (together.wait(), connections.close_all()), range(together.parties)))
    start, *bodies = sent
    assert start["status"] == 200
    assert [body.get("body", b"").count(b"\n") for body in bodies] == [*[1] * 11, 0]
    assert stored(program) == (1, 0, 1)


def test_only_the_member_who_requested_an_export_sees_and_downloads_it(
    program: Program, program_b: Program, browser: Browser
) -> None:
    client = browser(program.tenant)
    export_id = request_export(client, MESSAGES)
    write(client, export_id)
    for other in (browser(program.tenant), browser(program_b.tenant)):
        assert "This export does not exist any more" in page(other, export_id)
        assert other.get(f"/admin/exports/{export_id}/download/").status_code == 404
    with tenant_scope(program_b.tenant.id):
        assert not ListExportPart.objects.exists()
    assert "This export does not exist any more" in page(client, uuid4())
    stranger = Client(headers={"Host": "tenant-a.localhost"})
    assert stranger.get(f"/admin/exports/{export_id}/download/").status_code == 302
    assert stored(program) == (1, 1, 1)
    assert download(client, export_id).count("\n") == 11


@pytest.mark.parametrize("lost", ["export_list", "view_message", "is_active", "is_staff"])
def test_permissions_are_checked_again_by_the_worker_and_at_the_download(
    program: Program, browser: Browser, lost: str
) -> None:
    client = browser(program.tenant, "export_list", "view_message")
    first, second = request_export(client, MESSAGES), request_export(client, MESSAGES, "?q=3")
    write(client, first)
    with tenant_scope(program.tenant.id):
        member = User.objects.get(pk=ListExport.objects.get(pk=first).member_id)
        if lost.startswith("is_"):
            setattr(member, lost, False)
            member.save()
        else:
            member.user_permissions.filter(codename=lost).get()
            member.user_permissions.set(member.user_permissions.exclude(codename=lost))
    write(client, second)
    refused = client.get(f"/admin/exports/{first}/download/")
    assert refused.status_code == (302 if lost.startswith("is_") else 403)
    with tenant_scope(program.tenant.id):
        assert EXPORTS.jobs([second]).get().due_at > timezone.now() + exports.KEPT / 2
        assert not ListExportPart.objects.filter(export_id=second).exists()
    if lost == "view_message":
        failed = page(client, second)
        assert "may not export this list any more" in failed
        assert "every 1s" not in failed


def test_old_exports_make_room(program: Program, browser: Browser) -> None:
    client = browser(program.tenant)
    first = request_export(client, MESSAGES)
    for number in range(exports.MAX_EXPORTS):
        request_export(client, MESSAGES, f"?q={number}")
    assert stored(program) == (exports.MAX_EXPORTS, 0, exports.MAX_EXPORTS)
    assert "This export does not exist any more" in page(client, first)
    request_export(browser(program.tenant), MESSAGES)
    assert stored(program) == (exports.MAX_EXPORTS + 1, 0, exports.MAX_EXPORTS + 1)


def test_a_killed_worker_is_followed_by_one_that_writes_the_whole_file(
    program: Program, admin: Client, small_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_id = request_export(admin, MESSAGES)
    as_csv = exports.as_csv

    def killed(columns: list[str], rows: Any) -> Iterator[str]:
        lines = as_csv(columns, rows)
        yield from (next(lines) for _ in range(4))
        raise KeyboardInterrupt

    monkeypatch.setattr(exports, "as_csv", killed)
    with pytest.raises(KeyboardInterrupt):
        write(admin, export_id)
    assert stored(program) == (1, 4, 1)
    assert "3 rows are written." in page(admin, export_id)
    assert admin.get(f"/admin/exports/{export_id}/download/").status_code == 302
    monkeypatch.setattr(exports, "as_csv", as_csv)
    write(admin, export_id)
    write(admin, export_id)  # the job, once more
    assert stored(program) == (1, 11, 1)
    assert download(admin, export_id).count("\n") == 11


def test_an_export_that_would_outlast_its_lease_fails_with_the_remedy(
    program: Program, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "MAX_SECONDS", -1)
    export_id = request_export(admin, MESSAGES)
    write(admin, export_id)
    assert "export a range of dates" in page(admin, export_id)
    assert stored(program) == (1, 0, 1)


def test_an_export_is_deleted_after_a_day(program: Program, admin: Client) -> None:
    export_id = request_export(admin, MESSAGES)
    write(admin, export_id)
    with tenant_scope(program.tenant.id):
        job = EXPORTS.jobs([export_id]).get()
        created_at = ListExport.objects.get().created_at
        assert abs(job.due_at - created_at - exports.KEPT) < timedelta(seconds=5)
        ListExport.objects.update(created_at=F("created_at") - exports.KEPT)
    assert admin.get(f"/admin/exports/{export_id}/download/").status_code == 404
    write(admin, export_id)
    assert stored(program) == (0, 0, 0)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("removal", ["person", "other person", "message", "retention"])
@pytest.mark.parametrize("is_running", [True, False])
def test_erasures_and_retention_delete_all_exports(
    program: Program,
    admin: Client,
    small_parts: None,
    monkeypatch: pytest.MonkeyPatch,
    removal: str,
    *,
    is_running: bool,
) -> None:
    monkeypatch.setattr(person, "_purge_table", lambda *_, **__: None)
    export_id = request_export(admin, MESSAGES, "?user=maria")

    removed = []

    def remove() -> None:
        with database.as_owner(), tenant_scope(program.tenant.id):
            if removal == "retention":
                Message.objects.update(created_at=datetime(2020, 1, 1, tzinfo=UTC))
                RetentionRule.objects.create(days=1)
                assert [*apply_rules().values()] == [10]
            elif removal == "message":
                message = Message.objects.latest("number")
                names = ("agent_id", "user_id", "thread_id")
                target = {name: getattr(message, name) for name in names}
                messages.carry_out(request_message_erasure(**target, message_id=message.pk, by=EVA))
            else:
                user_id = "maria" if removal == "person" else "bob"
                erasing.carry_out(request_erasure(user_id, by=EVA))
        removed.append(removal)

    if is_running:
        as_csv = exports.as_csv

        def interrupted(columns: list[str], rows: Any) -> Iterator[str]:
            lines = list(as_csv(columns, rows))
            yield from lines[:4]
            remove()
            yield from lines[4:]

        monkeypatch.setattr(exports, "as_csv", interrupted)
        write(admin, export_id)
    else:
        write(admin, export_id)
        remove()
    assert removed == [removal]
    exports_left, parts, _ = stored(program)
    assert (exports_left, parts) == (0, 0)
    assert "This export does not exist any more" in page(admin, export_id)
    assert admin.get(f"/admin/exports/{export_id}/download/").status_code == 404
    write(admin, export_id)
    assert stored(program) == (0, 0, 0)


def test_an_export_is_repeated_after_an_error_and_ends_with_it_after_three(
    program: Program, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_id = request_export(admin, MESSAGES)
    as_csv = exports.as_csv
    monkeypatch.setattr(exports, "as_csv", lambda *_: iter([1 / 0]))
    write(admin, export_id)
    assert "It failed and is tried again" in page(admin, export_id)
    monkeypatch.setattr(exports, "as_csv", as_csv)
    write(admin, export_id)
    assert download(admin, export_id).count("\n") == 11

    monkeypatch.setattr(exports, "as_csv", lambda *_: iter([1 / 0]))
    export_id = request_export(admin, MESSAGES, "?q=3")
    for _ in range(EXPORTS.max_attempts):
        write(admin, export_id)
    assert "The export has failed" in page(admin, export_id)
