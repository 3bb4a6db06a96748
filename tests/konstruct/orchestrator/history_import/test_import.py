"""The command import_history: who is who, repeated and longer exports, two tenants, erasures."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.history_import import importing
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from memory.models import MemoryEntry, Message, PendingEmbedding
from tenants.audit.access_log import Actor
from tenants.audit.models import AccessEvent, ActorKind
from tenants.context import tenant_scope
from tenants.outbox.models import EventType, OutboxEvent
from tests.konstruct.conftest import Program

EXPORTS = Path(__file__).parent / "exports"
CHAT = EXPORTS / "WhatsApp-Chat mit Maria.txt"
GERMAN: dict[str, Any] = {
    "agent": "ada", "person": ["Maria Krüger=maria"], "agent_name": ["Reisebüro Ada"],
    "time_zone": "Europe/Berlin",
}  # fmt: skip


def run(program: Program, path: Path, **options: Any) -> None:
    call_command("import_history", str(path), tenant=program.tenant.slug, **options)


def stored(program: Program) -> list[tuple[str, str, str, str]]:
    """Return user, role, beginning of the text, and UTC time of each message, in their order."""
    with tenant_scope(program.tenant.id):
        messages = Message.objects.order_by("created_at", "number")
        return [
            (m.user_id, m.role, m.content[:20], f"{m.created_at.astimezone(UTC):%m-%d %H:%M}")
            for m in messages
        ]


def events(program: Program) -> int:
    with tenant_scope(program.tenant.id):
        return OutboxEvent.objects.filter(type=EventType.IMPORT_DONE).count()


def test_a_chat_is_previewed_then_imported_and_a_longer_one_adds_the_rest(
    program_a: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / CHAT.name
    lines = CHAT.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:6]))
    run(program_a, path, dry_run=True, **GERMAN)
    shown = capsys.readouterr().out
    assert "WhatsApp-Chat mit Maria: 3 messages from 2025-12-28 20:15 to 2025-12-28 20:16" in shown
    assert "Maria Krüger: 2 texts, user maria" in shown
    assert "3 created, 0 exists, 0 invalid, 1 left out" in shown
    assert (stored(program_a), events(program_a)) == ([], 0)

    run(program_a, path, **GERMAN)
    said = [
        ("maria", "user", "Guten Abend! Hält de", "12-28 20:15"),
        ("maria", "assistant", "Ja, um 9:40 Uhr.\nSie", "12-28 20:15"),
        ("maria", "user", "[Attached, and not t", "12-28 20:16"),
    ]
    assert (stored(program_a), events(program_a)) == (said, 1)
    run(program_a, path, **GERMAN)
    assert (stored(program_a), events(program_a)) == (said, 2)

    capsys.readouterr()
    path.write_text(CHAT.read_text())
    run(program_a, path, **GERMAN)
    output = capsys.readouterr()
    assert stored(program_a) == [*said, ("maria", "user", "Das ist mein Gepäck.", "12-28 20:17")]
    assert "1 created, 3 exists, 0 invalid, 3 left out" in output.out
    assert "Jürgen: 1 texts, left out" in output.out
    # The agent answers him, so that its words are no message to Maria.
    assert [line.removeprefix(f"{path}:") for line in output.err.splitlines()] == [
        "1: a message of WhatsApp itself",
        "9: 'Jürgen' is neither assigned to a user nor a name of the agent",
        "10: the agent answers somebody who is not assigned, or nobody",
    ]
    with tenant_scope(program_a.tenant.id):
        assert PendingEmbedding.objects.count() == 4
        counts = [event.detail["counts"] for event in AccessEvent.objects.filter(action="import")]
        assert {"created": 1, "exists": 3} in counts
        (thread,) = set(Message.objects.values_list("thread_id", flat=True))
        assert thread == "WhatsApp-Chat mit Maria"


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("slack", {"person": ["María=maria", "U02BOB=bob"], "agent_name": ["Ada"]},
         [("maria", "user"), ("maria", "assistant"), ("bob", "user"), ("maria", "user")]),
        ("result.json", {"person": ["Мария=maria"], "agent_name": ["user2"]},
         [("maria", "user"), ("maria", "assistant"), ("maria", "user")]),
        ("conversations.json", {"user": "maria"},
         [("maria", "user"), ("maria", "assistant"), ("maria", "user")]),
        ("sharegpt.jsonl", {"user": "maria"}, [("maria", "user"), ("maria", "assistant")] * 2),
        ("tickets.csv",
         {"person": ["Maria=maria", "Theo=theo"], "agent_name": ["Support"],
          "time_zone": "Europe/Vienna", "format": "csv",
          "column": ["text=Nachricht", "time=Wann", "author=Wer", "thread=Ticket"]},
         [("maria", "user"), ("maria", "assistant")]),
    ],
)  # fmt: skip
def test_each_format_is_imported_once_by_two_tenants(
    program_a: Program, program_b: Program, name: str, options: Any, said: Any
) -> None:
    for _ in range(2):
        run(program_a, EXPORTS / name, agent="ada", **options)
        assert [row[:2] for row in stored(program_a)] == said
    assert stored(program_b) == []
    with tenant_scope(program_b.tenant.id):
        agent = program_b.agent.name
    run(program_b, EXPORTS / name, agent=agent, **options)
    assert stored(program_b) == stored(program_a) or name == "sharegpt.jsonl"  # without times


def test_memories_become_facts_that_a_second_import_leaves_as_they_are(
    program_a: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    run(program_a, EXPORTS / "mem0.json")
    run(program_a, EXPORTS / "zep.json", agent="ada")
    with tenant_scope(program_a.tenant.id):
        facts = MemoryEntry.objects.order_by("external_id")
        assert [(f.external_id, f.user_id, f.content) for f in facts] == [
            ("mem0:m1", "maria", "Likes green tea"),
            ("mem0:m2", "theo", "Wohnt in Graz"),
            ("zep:f1", "maria", "María lives in Oslo"),
        ]
        tea = facts[0]
        assert (tea.metadata, tea.agent_id) == ({"source": "chat", "categories": ["food"]}, None)
        assert tea.valid_from == datetime(2026, 1, 5, 17, 30, tzinfo=UTC)
        MemoryEntry.objects.filter(pk=tea.pk).update(content="Likes white tea")
    assert [row[:3] for row in stored(program_a)] == [
        ("maria", "user", "I moved to Oslo."), ("maria", "assistant", "How is it?"),
    ]  # fmt: skip
    capsys.readouterr()
    run(program_a, EXPORTS / "mem0.json")
    output = capsys.readouterr()
    assert "0 created, 2 exists, 0 invalid, 1 left out" in output.out
    assert "item 3: its user is not named" in output.err
    with tenant_scope(program_a.tenant.id):
        assert MemoryEntry.objects.count() == 3
        assert MemoryEntry.objects.get(pk=tea.pk).content == "Likes white tea"


def test_an_invalid_memory_is_left_out_with_the_reason(
    program_a: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "memories.json"
    rows = [{"memory": "Likes\0tea"}, {"memory": "Likes\ud800tea"}]
    rows += [{"memory": "Old", "created_at": "0001-01-01T00:00:00+14:00"}]
    rows += [{"memory": "New", "created_at": "9999-12-31T23:59:59-14:00"}]
    path.write_text(json.dumps([*rows, {"memory": "Likes green tea"}]))
    with pytest.raises(CommandError):
        run(program_a, path, user="maria")
    assert "1 created, 0 exists, 4 invalid" in capsys.readouterr().out


def test_lines_of_a_transcript_are_imported_as_by_the_api(
    program_a: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setattr(importing, "BATCH", 3)
    path = tmp_path / "history.jsonl"
    bare = [{"role": "user", "content": "Is it on Monday?"},
            {"role": "assistant", "content": "On Tuesday."}]  # fmt: skip
    for count in (4, 4, 6):
        path.write_text("\n".join(json.dumps(line) for line in (bare * 3)[:count]))
        run(program_a, path, agent="ada", user="maria", thread="t")
        assert len(stored(program_a)) == count
    path.write_text(f"{json.dumps(bare[0])}\nnot json\n{json.dumps(bare[0] | {'role': 'bot'})}\n")
    capsys.readouterr()
    with pytest.raises(CommandError, match="2 lines were not imported"):
        run(program_a, path, agent="ada", user="theo")
    errors = capsys.readouterr().err.splitlines()
    assert errors[0].startswith(f"{path}:2: the line is not an object with role and content")
    assert errors[1].startswith(f"{path}:3: role='bot'")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"time_zone": ""}, "2: the time 2025-12-28 21:15 has no time zone: give one"),
        ({"time_zone": "Europe/Bonn"}, "'Europe/Bonn' is unknown"),
        ({"agent": ""}, "need an agent"),
        ({"agent": "bo"}, "No agent has the name or id 'bo'"),
        ({"person": ["maria"]}, "'maria' is not NAME=VALUE"),
        ({"format": "telegram"}, "is not valid JSON"),
    ],
)
def test_a_wrong_or_missing_option_ends_the_import(
    program_a: Program, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(CommandError, match=reason):
        run(program_a, CHAT, **GERMAN | options)
    assert (stored(program_a), events(program_a)) == ([], 0)


def test_a_missing_or_empty_file_is_refused(program_a: Program, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        run(program_a, tmp_path / "no")
    (tmp_path / "empty").touch()
    with pytest.raises(CommandError, match="empty is empty"):
        run(program_a, tmp_path / "empty")


def test_a_user_who_is_being_erased_gets_no_history(program_a: Program) -> None:
    run(program_a, CHAT, **GERMAN)
    with tenant_scope(program_a.tenant.id):
        request_erasure("maria", by=Actor(ActorKind.PERSON, "1", "eva"))
    for dry_run in (True, False):
        with pytest.raises(CommandError, match="eras"):
            run(program_a, CHAT, dry_run=dry_run, **GERMAN)


def test_the_agent_is_the_one_of_the_option(program_a: Program) -> None:
    with tenant_scope(program_a.tenant.id):
        bo = create_agent(tenant_id=program_a.tenant.id, name="bo")
    run(program_a, CHAT, **GERMAN | {"agent": "bo"})
    with tenant_scope(program_a.tenant.id):
        assert set(Message.objects.values_list("agent_id", flat=True)) == {bo.pk}
