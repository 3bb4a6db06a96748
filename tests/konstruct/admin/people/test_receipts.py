"""The receipt of an erasure: a readable page, and a file that a command verifies."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from konstruct.orchestrator.identities import erasure_requests
from konstruct.orchestrator.messages import Thread
from memory.models import Message
from tenants.admin.recorded_admin import time_text
from tenants.audit.access_log import Actor
from tenants.audit.models import AccessEvent, ActorKind, ErasureRequest, MessageErasure
from tenants.audit.people import pseudonym
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.konstruct.conftest import Browser, Program

REASON = "</dd><script>alert(1)</script>\u202e"
RECEIPT = {
    "found": True,
    "left": 0,
    "tables": {
        "memory_message": {"removed": 12, "sha256_of_ids": "0" * 64},
        "audit_accessevent": {"changed": 3},
        "checkpoints": {"removed": 2},
    },
    "storage": {"later": {"backups": "when they expire"}},
    "threads_shared_with_others": 1,
    "sessions_left": 0,
}


def request_of(tenant: Tenant, *, is_done: bool = True, user_id: str = "maria") -> ErasureRequest:
    with tenant_scope(tenant.id):
        name = pseudonym(user_id) if is_done else user_id
        request = ErasureRequest(
            user_id=name, user_ids=[name], requested_by="eva", reason=REASON,
            done_at=timezone.now() if is_done else None,
            receipt={**RECEIPT, "user_ids": [name]} if is_done else None,
        )  # fmt: skip
        request.save(force_insert=True)
        request.refresh_from_db()
    return request


def test_the_receipt_is_plain_and_is_found_by_the_erased_id(
    tenant_a: Tenant, tenant_b: Tenant, browser: Browser
) -> None:
    request = request_of(tenant_a)
    client = browser(tenant_a)
    address = f"/admin/audit/erasurerequest/{request.pk}/change/"
    assert address in client.get("/admin/people/?q=maria", follow=True).text
    assert address in client.get("/admin/audit/erasurerequest/?q=maria").text
    page = client.get(address)
    assert page.context["kinds"] == [
        ("access log", 0, 3),
        ("messages", 12, 0),
        ("records of the framework", 2, 0),
    ]
    article = page.text.split("<article", 1)[1].split("</article>", 1)[0]
    for hidden in ("memory_message", "accessevent", "maria", "<script>"):
        assert hidden not in article
    assert "1 conversation with others keep" in article
    assert "wenn sie ablaufen" in client.get(address, headers={"Accept-Language": "de"}).text
    assert "every 5s" not in page.text
    assert browser(tenant_b).get(address).status_code == 404
    assert browser(tenant_a, "view_message").get(address).status_code == 403
    assert browser(tenant_a, "view_erasurerequest").get(address).status_code == 200


def test_the_page_of_an_erasure_that_runs_refreshes_itself(
    tenant_a: Tenant, program_a: Program, browser: Browser
) -> None:
    request = request_of(tenant_a, is_done=False)
    page = browser(tenant_a).get(f"/admin/audit/erasurerequest/{request.pk}/change/")
    assert 'hx-trigger="every 5s"' in page.text
    assert "A process of the operator begins in a moment" in page.text
    assert browser(tenant_a).get(f"/admin/erasures/{request.pk}/receipt.json").status_code == 404
    progress = {"step": "removes messages", "messages": {"removed": 3, "of": 9}}
    for user_id, fields, texts in (
        ("bob", {}, ("waits for the owner",)),
        ("eve", {"progress": progress}, ("being done", "3 of 9 messages are removed")),
        ("zoe", {"last_error": "no broker"}, ("failed, will be tried again", "no broker", "ada")),
    ):
        with tenant_scope(tenant_a.id):
            by = {"requested_by": "eva", "agent_id": program_a.agent.pk}
            running = ErasureRequest(user_id=user_id, **by, **fields)
            running.save(force_insert=True)
        page = browser(tenant_a).get(f"/admin/audit/erasurerequest/{running.pk}/change/")
        assert [text in page.text for text in texts] == [True] * len(texts)


def test_an_erased_message_has_a_receipt(
    populated_a: Program, tenant_b: Tenant, browser: Browser
) -> None:
    tenant = populated_a.tenant
    with tenant_scope(tenant.id):
        message = Message.objects.filter(role="user").first()
        assert message is not None
        erasure = erasure_requests.request_message_erasure(
            **Thread.of(message).as_filter,
            message_id=message.pk,
            by=Actor(ActorKind.PERSON, "1", "eva"),
            reason=REASON,
        )
    address = f"/admin/audit/messageerasure/{erasure.pk}/change/"
    client = browser(tenant)
    client.cookies["time_zone"] = "Asia%2FKolkata"
    assert "The erasure is not done yet" in client.get(address).text
    assert address in client.get("/admin/audit/messageerasure/").text
    with tenant_scope(tenant.id):
        done = MessageErasure(
            user_id=message.user_id,
            agent_id=message.agent_id,
            thread_id=message.thread_id,
            message_id=uuid4(),
            requested_by="eva",
            reason=REASON,
            done_at=timezone.now(),
            receipt={**RECEIPT, "quoted_in": [str(message.pk)]},
        )
        done.save(force_insert=True)
    address = f"/admin/audit/messageerasure/{done.pk}/change/"
    page = client.get(address)
    article = page.text.split("<article", 1)[1].split("</article>", 1)[0]
    assert page.context["kinds"][1] == ("messages", 12, 0)
    assert "a message was erased" in article
    assert "1 message that quotes it stays." in article
    with timezone.override("Asia/Kolkata"):
        assert f"On {time_text(done.done_at)} a message" in article
    assert " IST" in article
    assert "UTC" not in article
    assert "<script>" not in article
    assert browser(tenant_b).get(address).status_code == 404
    assert browser(tenant, "view_erasurerequest").get(address).status_code == 403
    assert browser(tenant, "view_messageerasure").get(address).status_code == 200


def test_a_reason_that_names_the_person_is_refused_and_kept_in_the_form(
    populated_a: Program, admin: Client
) -> None:
    form = {"typed": "maria", "reason": "MARIA asked for it"}
    with tenant_scope(populated_a.tenant.id):
        message = Message.objects.filter(user_id="maria").earliest("number")
    for address in ("people/person/erase/?user=maria", f"messages/{message.pk}/erase/"):
        assert "write no id and no name" in admin.get(f"/admin/{address}").text
        page = admin.post(f"/admin/{address}", {**form, "what": "conversation"}).text
        assert "names the person" in page
        assert "MARIA asked for it</textarea>" in page
    assert 'value="conversation" selected' in page
    with tenant_scope(populated_a.tenant.id):
        assert not ErasureRequest.objects.exists()
        assert not MessageErasure.objects.exists()


def test_a_downloaded_receipt_is_verified_by_the_command(
    tenant_a: Tenant, tenant_b: Tenant, browser: Browser, tmp_path: Path,
    capsys: Any, settings: Any,
) -> None:  # fmt: skip
    request = request_of(tenant_a)
    address = f"/admin/erasures/{request.pk}/receipt.json"
    for other in (browser(tenant_b), browser(tenant_a, "view_message")):
        assert other.get(address).status_code in (403, 404)
    answer = browser(tenant_a).get(address)
    assert answer.headers["Content-Disposition"] == (
        f'attachment; filename="receipt-{request.pk}.json"'
    )
    with tenant_scope(tenant_a.id):
        assert AccessEvent.objects.filter(action="export", subject_id=str(request.pk)).exists()
    file = tmp_path / "receipt.json"
    file.write_bytes(answer.content)
    call_command("verify_receipt", str(file))
    assert capsys.readouterr().out.startswith(f"unchanged: erasure {request.pk} of tenant tenant-a")
    # Another order and other spaces are the same receipt; a rotated key still verifies it.
    document = json.loads(answer.content)
    file.write_text(json.dumps(dict(reversed(document.items()))))
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another"
    call_command("verify_receipt", str(file))
    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(CommandError, match="the digest does not fit"):
        call_command("verify_receipt", str(file))
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("verify_receipt", str(tmp_path / "nothing"))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"removed": 12', '"removed": 13'),
        lambda text: text.replace('"left": 0', '"left": 5, "left": 0'),
        lambda text: text.replace('"version": 1', '"version": 2'),
        lambda text: text.replace("hmac-sha256", "none"),
        lambda text: text.replace('"left": 0', '"left": NaN'),
        lambda text: text[:-5],
        lambda text: "[]",
        lambda text: "\0",
        lambda text: '{"digest": 7}',
        lambda text: "[" * 100_000,
        lambda text: text.replace('"tenant": "tenant-a"', '"tenant": "tenant-b"'),
    ],
)
def test_changed_or_invalid_receipt_is_refused(
    tenant_a: Tenant, tmp_path: Path, change: Callable[[str], str]
) -> None:
    text = json.dumps(erasure_requests.receipt_document(request_of(tenant_a), tenant_a))
    assert erasure_requests.verify_receipt(text.encode())["tenant"] == "tenant-a"
    file = tmp_path / "receipt.json"
    file.write_text(change(text))
    with pytest.raises(CommandError):
        call_command("verify_receipt", str(file))
