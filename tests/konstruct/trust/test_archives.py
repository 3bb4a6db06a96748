"""Export and import: what comes back is what went out; what is not whole does not come in."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from django.core.management import CommandError, call_command

from konstruct.orchestrator.intake import Incoming, accept
from konstruct.orchestrator.models import Agent
from konstruct.trust.archives import export_memory, import_memory, read_manifest
from konstruct.trust.archives.kinds import KINDS, NOT_EXPORTED
from konstruct.trust.erasure.rows import tables_of_tenant
from konstruct.trust.ledger import verify
from memory.archive import MemoryManager
from memory.context import SessionStore
from memory.facts import LongTermMemory
from memory.models import MemoryEntry, Message
from memory.recall import recall
from memory.short_term import clear_window, get_recent_messages
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.konstruct.trust.test_erasure import helped, save_session

pytestmark = pytest.mark.django_db(transaction=True)

QUESTIONS = ("What is my dog called?", "Where do I live?", "What am I allergic to?")


@pytest.fixture
def full(tenant_a: Tenant, agent: Agent, talk: Callable[..., Message]) -> None:
    """Two people with everything that is kept of them."""
    for said in ("My dog is called Rex.", "I live in Lisbon.", "I am allergic to walnuts.", "…"):
        message = talk(said)
    with tenant_scope(tenant_a.id):
        helped(message, "maria")
    clear_window(tenant_a.id, agent.id, "maria")
    talk("Rex is three years old.")
    talk("I like cheese.", "bob", "his")
    entry = MemoryEntry(
        tenant_id=tenant_a.id, agent_id=agent.id, user_id="maria", content="Maria has a dog.",
        metadata={"topic": "pets", "n": 1.5},
    )  # fmt: skip
    memory_id = LongTermMemory().store(entry)
    LongTermMemory().update(memory_id, tenant_a.id, content="Maria has a dog, Rex.")
    save_session(tenant_a, "t", "Session of maria.")
    save_session(tenant_a, "his", "Session of bob.")
    accept(Incoming(agent.id, "maria", "t", "rest", "Are you there?"), tenant_id=tenant_a.id)


def recalled(tenant: Tenant, agent: Agent) -> list[list[tuple[Any, ...]]]:
    return [
        [
            (hit.message_id, hit.score, hit.probability, hit.channels)
            for hit in recall(tenant.id, agent.id, "maria", question).hits
        ]
        for question in QUESTIONS
    ]


def test_every_table_is_exported_or_said_not_to_be(tenant_a: Tenant) -> None:
    """A new table: add it to konstruct/trust/archives/kinds.py."""
    with tenant_scope(tenant_a.id):
        assert set(tables_of_tenant()) == {kind.table for kind in KINDS} | NOT_EXPORTED


def test_a_memory_comes_back_equal_in_another_tenant(
    tenant_a: Tenant, make_tenant: Callable[..., Tenant], full: None, agent: Agent, tmp_path: Path
) -> None:
    before = export_memory(tenant_a, tmp_path / "a.db")
    assert before.counts["messages"] == 13
    assert before.counts["index"] == before.counts["messages"] - 1
    assert min(before.counts.values()) > 0
    other = make_tenant()
    import_memory(other, tmp_path / "a.db", expected_digest=before.digest)
    after = export_memory(other, tmp_path / "b.db")
    assert after.counts == before.counts
    assert after.sha256 == before.sha256
    assert after.digest == before.digest
    assert recalled(other, agent) == recalled(tenant_a, agent)
    assert all(recalled(other, agent))
    assert get_recent_messages(other.id, agent.id, "maria") == get_recent_messages(
        tenant_a.id, agent.id, "maria"
    )
    assert SessionStore(other.id).checkpointer.get({"configurable": {"thread_id": "his"}})
    assert verify(other.id, "other").findings == []

    news: list[int] = []
    import_memory(other, tmp_path / "a.db", say=lambda kind, new, rows: news.append(new))
    assert set(news) == {0}
    assert export_memory(other, tmp_path / "c.db").digest == before.digest


def test_one_persons_archive_holds_nobody_else(
    tenant_a: Tenant, tenant_b: Tenant, full: None, agent: Agent, tmp_path: Path
) -> None:
    path = tmp_path / "maria.db"
    export_memory(tenant_a, path, user_id="maria")
    assert b"cheese" not in path.read_bytes()
    assert b"Session of bob" not in path.read_bytes()
    import_memory(tenant_b, path)
    assert recalled(tenant_b, agent) == recalled(tenant_a, agent)
    assert [path.name for path in tmp_path.iterdir()] == ["maria.db"]


def test_it_is_searched_offline(tenant_a: Tenant, full: None, tmp_path: Path) -> None:
    export_memory(tenant_a, tmp_path / "a.db")
    with MemoryManager(tmp_path / "a.db") as archive:
        hits = archive.search("What is my dog called?", k=3)
        assert "My dog is called Rex." in [hit.message.content for hit in hits]
        titles = {each.title for each in archive.list_conversations()}
    assert titles == {"t", "his"}


def change(path: Path, sql: str) -> None:
    with apsw.Connection(str(path)) as sqlite:
        sqlite.execute(sql)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("UPDATE exported SET row = replace(row, 'Lisbon', 'London') WHERE kind = 'messages'",
         "changed since it was exported: its messages"),
        ("DELETE FROM exported WHERE kind = 'scopes'", "changed since it was exported: its scopes"),
        ("UPDATE messages SET content = 'x' WHERE position = 1", "its offline_messages"),
        ("UPDATE manifest SET document = json_set(document, '$.format', 99)",
         "has format 99; this program knows up to 2"),
        ("UPDATE manifest SET document = '{}'", "manifest that cannot be read"),
        ("DROP TABLE manifest", "no export of a tenant's memory"),
        ("PRAGMA user_version = 99", "schema version 99"),
        ("PRAGMA application_id = 5", "another program"),
    ],
)  # fmt: skip
def test_what_is_not_whole_is_refused_and_changes_nothing(
    tenant_a: Tenant, tenant_b: Tenant, agent: Agent, talk: Callable[..., Message],
    tmp_path: Path, damage: str, reason: str,
) -> None:  # fmt: skip
    talk("I live in Lisbon.")
    path = tmp_path / "a.db"
    export_memory(tenant_a, path)
    change(path, damage)
    with pytest.raises(CommandError, match=reason):
        call_command("import_memory", "--tenant", "tenant-b", str(path))
    with tenant_scope(tenant_b.id):
        assert not Message.objects.exists()
        assert not Agent.objects.exists()


def test_files_that_are_none_are_refused(
    tenant_a: Tenant, tenant_b: Tenant, full: None, tmp_path: Path
) -> None:
    whole, cut, foreign, text = (tmp_path / name for name in ("a.db", "cut.db", "f.db", "t.db"))
    export_memory(tenant_a, whole)
    cut.write_bytes(whole.read_bytes()[:-5000])
    foreign_file = sqlite3.connect(foreign)
    foreign_file.execute("CREATE TABLE x (y)")
    foreign_file.close()
    text.write_text("no archive")
    for path in (cut, foreign, text, tmp_path / "missing.db"):
        with pytest.raises(CommandError):
            call_command("import_memory", "--tenant", "tenant-b", str(path))
    assert not (tmp_path / "missing.db").exists()
    with pytest.raises(CommandError, match="another archive: its digest is"):
        call_command("import_memory", "--tenant", "tenant-b", "--digest", "x", str(whole))
    with tenant_scope(tenant_b.id):
        assert not Message.objects.exists()


def test_what_stands_for_something_else_is_a_reason_to_import_nothing(
    tenant_a: Tenant, tenant_b: Tenant, full: None, tmp_path: Path
) -> None:
    path = tmp_path / "a.db"
    export_memory(tenant_a, path)
    with tenant_scope(tenant_b.id):
        Agent.objects.create(name="ada")
        with pytest.raises(CommandError, match=r"its agents cannot be imported: .* is taken"):
            call_command("import_memory", "--tenant", "tenant-b", str(path))
        assert not Message.objects.exists()
    with tenant_scope(tenant_a.id):
        Agent.objects.update(persona="Changed since.")
    import_memory(tenant_a, path)
    with tenant_scope(tenant_a.id):
        assert Agent.objects.get().persona == "Changed since."


def test_the_commands_say_what_they_do(
    tenant_a: Tenant, tenant_b: Tenant, full: None, tmp_path: Path, capsys: Any
) -> None:
    path = tmp_path / "a.db"
    capsys.readouterr()
    call_command("export_memory", "--tenant", "tenant-a", str(path))
    digest = read_manifest(path).digest
    out = capsys.readouterr().out
    assert "  13 messages\n" in out
    assert out.endswith(f"exported to {path}; digest {digest}\n")
    call_command("import_memory", "--tenant", "tenant-b", "--digest", digest, str(path))
    assert "  13 of 13 messages are new\n" in capsys.readouterr().out
    with pytest.raises(CommandError, match="exists already"):
        call_command("export_memory", "--tenant", "tenant-a", str(path))
    with pytest.raises(CommandError, match="nothing is known of user 'eve'"):
        call_command("export_memory", "--tenant", "tenant-a", "--user", "eve", f"{path}2")
    assert [each.name for each in tmp_path.iterdir()] == ["a.db"]
    assert json.loads(read_manifest(path).text())["tenant"] == "tenant-a"
