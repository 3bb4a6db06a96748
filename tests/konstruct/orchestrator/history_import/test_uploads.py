"""Uploaded files: the preview, the confirmation, the report, and everything that ends an import."""

import base64
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from konstruct.orchestrator.history_import import importing, lines
from konstruct.orchestrator.identities import erasure_requests
from konstruct.orchestrator.models import HISTORY_IMPORTS, HistoryImport
from konstruct.privacy.erasure import erasing, messages, person
from memory.models import Message
from tenants.audit.access_log import Actor
from tenants.audit.models import AccessEvent, ActorKind
from tenants.context import tenant_scope
from tenants.outbox.models import EventType, OutboxEvent
from tests import database
from tests.konstruct.conftest import Program

EXPORTS = Path(__file__).parent / "exports"
CHAT = EXPORTS / "WhatsApp-Chat mit Maria.txt"
IMPORTS = "/api/v1/imports/"
EVA = Actor(ActorKind.PERSON, "1", "eva")


def body(path: Path = CHAT, **fields: Any) -> dict[str, Any]:
    sent = {
        "file": base64.b64encode(path.read_bytes()).decode(),
        "file_name": path.name,
        "agent": "ada",
        "people": {"Maria Krüger": "maria"},
        "agent_names": ["Reisebüro Ada"],
        "time_zone": "Europe/Berlin",
        **fields,
    }
    return {name: value for name, value in sent.items() if value is not None}


def work(program: Program, import_id: str | UUID) -> None:
    """Do the job as a worker."""
    with tenant_scope(program.tenant.id):
        importing.run(UUID(str(import_id)))


def contents(program: Program) -> list[str]:
    with tenant_scope(program.tenant.id):
        stored = Message.objects.order_by("created_at", "number")
        return [message.content[:11] for message in stored]


def test_a_program_previews_a_file_and_imports_it(program_a: Program, program_b: Program) -> None:
    answer = program_a.post(IMPORTS, body(dry_run=True))
    assert answer.status_code == 202
    assert answer.headers["Location"] == answer.json()["url"]
    address = f"{IMPORTS}{answer.json()['id']}/"
    assert (answer.json()["state"], answer.json()["report"]) == ("waiting", None)
    work(program_a, answer.json()["id"])
    shown = program_a.get(address).json()
    assert (shown["state"], shown["error"]) == ("previewed", "")
    report = shown["report"]
    assert report["counts"] == {"created": 4, "left_out": 3}
    assert report["conversations"] == [
        {
            "thread_id": "WhatsApp-Chat mit Maria",
            "messages": 4,
            "first": "2025-12-28T20:15:00Z",
            "last": "2025-12-28T20:17:00Z",
        }
    ]
    assert {row["name"]: row["assigned"] for row in report["authors"]} == {
        "Maria Krüger": "user maria", "Reisebüro Ada": "agent", "Jürgen": "",
    }  # fmt: skip
    assert [row["place"] for row in report["left_out"]] == ["1", "9", "10"]
    assert contents(program_a) == []
    assert program_b.get(address).status_code == 404

    for counts in ({"created": 4, "left_out": 3}, {"exists": 4, "left_out": 3}):
        import_id = program_a.post(IMPORTS, body()).json()["id"]
        work(program_a, import_id)
        done = program_a.get(f"{IMPORTS}{import_id}/").json()
        assert (done["state"], done["report"]["counts"]) == ("imported", counts)
    assert contents(program_a) == ["Guten Abend", "Ja, um 9:40", "[Attached, ", "Das ist mei"]
    with tenant_scope(program_a.tenant.id):
        assert bytes(HistoryImport.objects.get(pk=import_id).content) == b""
        events = OutboxEvent.objects.filter(type=EventType.IMPORT_DONE)
        assert UUID(import_id) in set(events.values_list("subject_id", flat=True))
        logged = AccessEvent.objects.filter(action="import", actor_kind="program")
        assert {"created": 4} in [event.detail.get("counts") for event in logged]


def test_the_same_request_is_one_import(program_a: Program) -> None:
    key = {"Idempotency-Key": "once"}
    first, second = (program_a.post(IMPORTS, body(), headers=key).json() for _ in range(2))
    assert first["id"] == second["id"]


@pytest.mark.parametrize(
    ("fields", "status", "reason"),
    [
        ({"file": ""}, 400, "file"),
        ({"file": "???"}, 400, "not base64"),
        ({"format": "icq"}, 400, "icq"),
        ({"agent": "nobody"}, 422, "nobody"),
        ({"time_zone": "Mars/Olympus"}, 422, "Mars/Olympus"),
        ({"columns": {"words": "x"}}, 422, "words"),
        ({"people": ["maria"]}, 400, "people"),
        ({"people": {"a\0": "maria"}}, 400, "people"),
        ({"people": {"\ud800": "maria"}}, 400, "people"),
    ],
)
def test_wrong_fields_are_refused(
    program_a: Program, fields: dict[str, Any], status: int, reason: str
) -> None:
    answer = program_a.post(IMPORTS, body(**fields))
    assert (answer.status_code, reason in answer.text) == (status, True)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"file": base64.b64encode(b"PK\x03\x04").decode()}, "damaged archive"),
        ({"format": "telegram"}, "not valid JSON"),
        ({"time_zone": None}, "has no time zone"),
    ],
)
def test_a_file_that_cannot_be_read_ends_with_the_reason(
    program_a: Program, fields: dict[str, Any], reason: str
) -> None:
    answer = program_a.post(IMPORTS, body(**fields))
    work(program_a, answer.json()["id"])
    shown = program_a.get(f"{IMPORTS}{answer.json()['id']}/").json()
    assert (shown["state"], reason in shown["error"]) == ("failed", True)
    assert contents(program_a) == []


def test_a_person_being_erased_is_refused_also_by_a_file_that_waits(program_a: Program) -> None:
    waiting = program_a.post(IMPORTS, body()).json()["id"]
    with tenant_scope(program_a.tenant.id):
        Message.objects.create(
            user_id="maria", thread_id="t", channel="rest", role="user", content="Hi",
            agent_id=program_a.agent.pk,
        )  # fmt: skip
        erasure_requests.request_erasure("maria", by=EVA)
    refused = program_a.post(IMPORTS, body())
    assert (refused.status_code, "being-erased" in refused.text) == (409, True)
    work(program_a, waiting)
    shown = program_a.get(f"{IMPORTS}{waiting}/").json()
    assert shown["state"] == "failed"
    assert "eras" in shown["error"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("of", ["a person", "a conversation"])
@pytest.mark.parametrize("is_running", [False, True])
def test_an_erasure_removes_every_file(
    program_a: Program, monkeypatch: pytest.MonkeyPatch, of: str, is_running: bool
) -> None:
    monkeypatch.setattr(importing, "BATCH", 1)
    monkeypatch.setattr(person, "_purge_table", lambda *_, **__: None)
    with tenant_scope(program_a.tenant.id):
        Message.objects.create(
            user_id="theo", thread_id="t", channel="rest", role="user", content="Hi",
            agent_id=program_a.agent.pk,
        )  # fmt: skip
    import_id = program_a.post(IMPORTS, body()).json()["id"]
    removed: list[str] = []

    def remove() -> None:
        if removed:
            return
        removed.append(of)
        with database.as_owner(), tenant_scope(program_a.tenant.id):
            if of == "a person":
                erasing.carry_out(erasure_requests.request_erasure("theo", by=EVA))
            else:
                request = erasure_requests.request_message_erasure(
                    agent_id=program_a.agent.pk, user_id="theo", thread_id="t", by=EVA
                )
                messages.carry_out(request)

    if is_running:
        add = importing.Report.add

        def interrupted(*arguments: Any) -> None:
            remove()  # after the first batch
            add(*arguments)

        monkeypatch.setattr(importing.Report, "add", interrupted)
    else:
        remove()
    work(program_a, import_id)
    assert program_a.get(f"{IMPORTS}{import_id}/").status_code == 404
    assert len(contents(program_a)) < 4
    work(program_a, import_id)
    with tenant_scope(program_a.tenant.id):
        assert HISTORY_IMPORTS.jobs().count() == 0


def test_an_import_is_repeated_after_an_error_and_deleted_after_a_day(
    program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "BATCH", 2)
    import_id = program_a.post(IMPORTS, body()).json()["id"]
    store = lines.import_history

    def broken(sent: Any, **options: Any) -> Any:
        if any("Gepäck" in line["content"] for line in sent):
            raise ZeroDivisionError
        return store(sent, **options)

    monkeypatch.setattr(lines, "import_history", broken)
    work(program_a, import_id)
    assert len(contents(program_a)) == 2
    assert program_a.get(f"{IMPORTS}{import_id}/").json()["state"] == "waiting"
    monkeypatch.setattr(lines, "import_history", store)
    work(program_a, import_id)
    assert len(contents(program_a)) == 4
    shown = program_a.get(f"{IMPORTS}{import_id}/").json()
    assert shown["report"]["counts"] == {"exists": 2, "created": 2, "left_out": 3}
    work(program_a, import_id)
    assert program_a.get(f"{IMPORTS}{import_id}/").status_code == 200
    monkeypatch.setattr(importing, "KEPT", timedelta(0))
    work(program_a, import_id)
    assert program_a.get(f"{IMPORTS}{import_id}/").status_code == 404
    with tenant_scope(program_a.tenant.id):
        assert HISTORY_IMPORTS.jobs().count() == 0


@pytest.mark.parametrize("content", [CHAT.read_bytes(), b"text\n" + b"\n" * 1_000_000])
def test_a_file_that_would_outlast_its_lease_fails_with_the_remedy(
    program_a: Program, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(importing, "MAX_SECONDS", -1)
    sent = body(file=base64.b64encode(content).decode())
    import_id = program_a.post(IMPORTS, sent).json()["id"]
    work(program_a, import_id)
    shown = program_a.get(f"{IMPORTS}{import_id}/").json()
    assert (shown["state"], "divide the file" in shown["error"]) == ("failed", True)
    assert contents(program_a) == []


def test_a_member_sends_a_file_sees_the_preview_and_confirms(
    program_a: Program, admin: Client
) -> None:
    def send(**fields: Any) -> Any:
        file = SimpleUploadedFile(CHAT.name, CHAT.read_bytes())
        form = {"file": file, "agent": str(program_a.agent.pk), "time_zone": "Europe/Berlin"}
        return admin.post("/admin/imports/", form | fields)

    assert "Import history" in admin.get("/admin/imports/").text
    wrong = send(people="Maria", time_zone="Mars")
    assert "&#x27;Maria&#x27; is not NAME=VALUE." in wrong.text
    assert "&#x27;Mars&#x27; is unknown" in send(time_zone="Mars").text
    large = SimpleUploadedFile("large.txt", b"x" * (importing.MAX_FILE_BYTES + 1))
    assert "has more than 2,400,000 bytes" in send(file=large).text

    sent = send(people="Maria Krüger = maria\n", agent_names="Reisebüro Ada")
    assert sent.status_code == 302
    page = sent.headers["Location"]
    assert 'hx-trigger="every 1s"' in admin.get(page).text
    with tenant_scope(program_a.tenant.id):
        (import_id,) = HistoryImport.objects.values_list("pk", flat=True)
    work(program_a, import_id)
    preview = admin.get(page).text
    assert "4 new, 0 known already, 0 invalid, 3 left out" in preview
    assert "is neither assigned to a user nor a name of the agent" in preview
    assert contents(program_a) == []
    assert f"/admin/imports/?like={import_id}" in preview
    entered = admin.get(f"/admin/imports/?like={import_id}").context["form"]
    values = [entered[name].value() for name in ("agent", "people", "agent_names")]
    assert values == [str(program_a.agent.pk), "Maria Krüger=maria", "Reisebüro Ada"]
    confirm = f"/admin/imports/{import_id}/confirm/"
    assert admin.post(confirm).headers["Location"] == page
    work(program_a, import_id)
    assert "The file is imported" in admin.get(page).text
    assert len(contents(program_a)) == 4
    assert "has no preview" in admin.post(confirm, follow=True).text
