"""Export and import: the imported rows equal the exported ones; incomplete archives are refused."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any
from uuid import uuid4

import apsw
import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from konstruct.consistency import verify
from konstruct.orchestrator import models, pipeline
from konstruct.orchestrator.agents import restore_agent, update_agent
from konstruct.orchestrator.dry_runs import ask_questions, enqueue_questions, save_question
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from konstruct.privacy.archive.exporting import export_memory, read_manifest
from konstruct.privacy.archive.importing import import_memory
from memory import facts, indexing
from memory.archive import MemoryManager
from memory.context import SessionStore
from memory.context.recall_traces import traces
from memory.conversations.short_term import clear_window, get_recent_messages
from memory.conversations.transcript import record_message
from memory.models import (
    AuthorKind,
    Conversation,
    ConversationEmbedding,
    MemoryEntry,
    Message,
    PendingEmbedding,
    RecallEvent,
)
from memory.models.facts import SYSTEM
from memory.recall import recall
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.database import MakeTenant
from tests.konstruct.conftest import SendMessage
from tests.konstruct.privacy.conftest import save_session
from tests.konstruct.privacy.erasure.test_erasure import helped
from tests.memory.recall_traces import prompt_of, store_trace

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

QUESTIONS = ("What is my dog called?", "Where do I live?", "What am I allergic to?")


@pytest.fixture
def full(tenant_a: Tenant, agent: models.Agent, send_message: SendMessage) -> None:
    """Create two people with rows of every kind."""
    for content in ("My dog is called Rex.", "I live in Lisbon.", "I am allergic to walnuts.", "…"):
        message = send_message(content)
    with tenant_scope(tenant_a.id):
        helped(message, "maria")
    clear_window(tenant_a.id, agent.id, "maria")
    send_message("Rex is three years old.")
    send_message("I like cheese.", "bob", "his")
    entry = MemoryEntry(
        tenant_id=tenant_a.id, agent_id=agent.id, user_id="maria", content="Maria has a dog.",
        metadata={"topic": "pets", "n": 1.5},
    )  # fmt: skip
    memory_id = facts.LongTermMemory().store(entry)
    facts.LongTermMemory().update(memory_id, tenant_a.id, content="Maria has a dog, Rex.")
    extract(tenant_a, agent, "Lisbon")
    save_session(tenant_a, "t", "Session of maria.")
    save_session(tenant_a, "his", "Session of bob.")
    with tenant_scope(tenant_a.id):
        update_agent(agent, persona="Kind.")
        for user_id in ("maria", "bob", None):
            save_question(agent, content=f"What do I like, {user_id}?", user_id=user_id)
        Conversation.objects.create(
            agent_id=agent.id, user_id="maria", thread_id="t", title="Pets", metadata={"n": 1.5}
        )
        theirs = Message.objects.get(content="I like cheese.")
        store_trace(agent.id, "maria", sources=[message.pk, theirs.pk])
        enqueue_questions(agent.pk)
        ask_questions(agent.pk)
    accept(Incoming(agent.id, "maria", "t", "rest", "Are you there?"), tenant_id=tenant_a.id)


def extract(tenant: Tenant, agent: models.Agent, city: str) -> None:
    """Record a run that extracted maria's home."""
    entry = MemoryEntry(
        tenant_id=tenant.id, agent_id=agent.id, user_id="maria", content=f"Maria lives in {city}.",
        subject="Maria", slot="home_city", value=city, kind="observed", run_id=uuid4(),
    )  # fmt: skip
    facts.embed_facts([entry])
    with tenant_scope(tenant.id):
        message = Message.objects.get(content=f"I live in {city}.", role="user")
        run = models.ExtractionRun.objects.create(
            id=entry.run_id, agent_id=agent.id, user_id="maria", thread_id="t",
            message_ids=[message.pk], state="applied", output="{}",
        )  # fmt: skip
        quote = facts.Quote(message, len("I live in "), len(f"I live in {city}"))
        facts.record_candidate(entry, [quote], author=facts.Author(AuthorKind.RUN, str(run.pk)))
        facts.exclude_from_recall(
            message, author=facts.Author(AuthorKind.PERSON, "7"), start=0, end=1
        )


def recalled(tenant: Tenant, agent: models.Agent) -> list[list[tuple[Any, ...]]]:
    return [
        [
            (hit.message_id, hit.score, hit.probability, hit.channels)
            for hit in recall(tenant.id, agent.id, "maria", question).hits
        ]
        for question in QUESTIONS
    ]


def prompts(tenant: Tenant) -> list[dict[str, Any]]:
    with tenant_scope(tenant.id):
        return traces(RecallEvent.objects.order_by("id"))


def test_imported_memory_is_equal_in_another_tenant(
    tenant_a: Tenant, make_tenant: MakeTenant, full: None, agent: models.Agent, tmp_path: Path
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
    assert prompts(other) == prompts(tenant_a)
    assert get_recent_messages(other.id, agent.id, "maria") == get_recent_messages(
        tenant_a.id, agent.id, "maria"
    )
    assert SessionStore(other.id).checkpointer.get({"configurable": {"thread_id": "his"}})
    assert verify(other.id, "other").findings == []

    news: list[int] = []
    import_memory(other, tmp_path / "a.db", say=lambda kind, new, rows: news.append(new))
    assert set(news) == {0}
    assert export_memory(other, tmp_path / "c.db").digest == before.digest


def test_archive_of_one_person_contains_no_rows_of_others(
    tenant_a: Tenant, tenant_b: Tenant, full: None, agent: models.Agent, tmp_path: Path
) -> None:
    path = tmp_path / "maria.db"
    export_memory(tenant_a, path, user_id="maria")
    assert b"cheese" not in path.read_bytes()
    assert b"Session of bob" not in path.read_bytes()
    import_memory(tenant_b, path)
    assert recalled(tenant_b, agent) == recalled(tenant_a, agent)
    with tenant_scope(tenant_b.id):
        assert [*models.SavedQuestion.objects.values_list("user_id", flat=True)] == ["maria"]
        assert [*models.QuestionAnswer.objects.values_list("user_id", flat=True)] == ["maria"]
        assert not models.AgentVersion.objects.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["maria.db"]


def test_versions_and_answers_that_are_newer_in_the_tenant_stay(
    tenant_a: Tenant, tenant_b: Tenant, full: None, agent: models.Agent, tmp_path: Path
) -> None:
    """An archive is imported again after the agent has changed in both tenants."""
    export_memory(tenant_a, tmp_path / "a.db")
    import_memory(tenant_b, tmp_path / "a.db")
    for tenant, persona in ((tenant_a, "Curt."), (tenant_b, "Warm.")):
        with tenant_scope(tenant.id):
            update_agent(models.Agent.objects.get(pk=agent.pk), persona=persona)
            ask_questions(agent.pk)
    export_memory(tenant_a, tmp_path / "b.db")
    import_memory(tenant_b, tmp_path / "b.db")
    with tenant_scope(tenant_b.id):
        versions = models.AgentVersion.objects.filter(agent_id=agent.pk).order_by("number")
        assert [version.settings["persona"] for version in versions][-2:] == ["Kind.", "Warm."]
        assert models.QuestionAnswer.objects.filter(version=versions.count()).count() == 3
        restored = restore_agent(models.Agent.objects.get(pk=agent.pk), 2, author=SYSTEM)
    assert restored.persona == "Kind."


@pytest.mark.parametrize("replied", [False, True])
@pytest.mark.parametrize("user_id", [None, "maria"])
def test_messages_that_all_wait_for_embedding_are_embedded_where_they_are_imported(
    tenant_a: Tenant,
    tenant_b: Tenant,
    agent: models.Agent,
    tmp_path: Path,
    replied: bool,
    user_id: str | None,
) -> None:
    incoming = Incoming(agent.id, "maria", "t", "rest", "My dog is called Rex.")
    message, _ = accept(incoming, tenant_id=tenant_a.id)
    if replied:
        pipeline.handle(tenant_id=tenant_a.id, message_id=message.id)
    with tenant_scope(tenant_a.id):
        assert not ConversationEmbedding.objects.exists()
        waiting = PendingEmbedding.objects.count()
        assert waiting == Message.objects.count() == 1 + replied
    path = tmp_path / "a.db"
    manifest = export_memory(tenant_a, path, user_id=user_id)
    assert manifest.counts["pending_embeddings"] == waiting
    with MemoryManager(path) as archive:
        assert archive.search("What is my dog called?") == []

    import_memory(tenant_b, path, expected_digest=manifest.digest)
    if not replied:
        pipeline.handle(tenant_id=tenant_b.id, message_id=message.id)
    indexing.drain(tenant_b.id)
    with tenant_scope(tenant_b.id):
        assert not PendingEmbedding.objects.exists()
        embedded = set(ConversationEmbedding.objects.values_list("message_id", flat=True))
        assert embedded == set(Message.objects.values_list("id", flat=True))
    hits = recall(tenant_b.id, agent.id, "maria", QUESTIONS[0]).hits
    assert message.id in [hit.message_id for hit in hits]


def test_archive_is_searched_offline(tenant_a: Tenant, full: None, tmp_path: Path) -> None:
    export_memory(tenant_a, tmp_path / "a.db")
    with MemoryManager(tmp_path / "a.db") as archive:
        hits = archive.search("What is my dog called?", k=3)
        assert "My dog is called Rex." in [hit.message.content for hit in hits]
        titles = {conversation.title for conversation in archive.list_conversations()}
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
        ("UPDATE manifest SET document = json_set(document, '$.format', 99)",
         "has format 99; this program reads 3"),
        ("UPDATE manifest SET document = '{}'", "manifest that cannot be read"),
        ("DROP TABLE manifest", "no export of a tenant's memory"),
        ("PRAGMA user_version = 99", "schema version 99"),
        ("PRAGMA application_id = 5", "another program"),
    ],
)  # fmt: skip
def test_incomplete_archive_is_refused_and_changes_nothing(
    tenant_a: Tenant, tenant_b: Tenant, agent: models.Agent, send_message: SendMessage,
    tmp_path: Path, damage: str, reason: str,
) -> None:  # fmt: skip
    send_message("I live in Lisbon.")
    path = tmp_path / "a.db"
    export_memory(tenant_a, path)
    change(path, damage)
    with pytest.raises(CommandError, match=reason):
        call_command("import_memory", "--tenant", "tenant-b", str(path))
    with tenant_scope(tenant_b.id):
        assert not Message.objects.exists()
        assert not models.Agent.objects.exists()


def test_other_files_are_refused(
    tenant_a: Tenant, tenant_b: Tenant, full: None, tmp_path: Path
) -> None:
    complete, cut, foreign, text = (tmp_path / name for name in ("a.db", "cut.db", "f.db", "t.db"))
    export_memory(tenant_a, complete)
    cut.write_bytes(complete.read_bytes()[:-5000])
    foreign_file = sqlite3.connect(foreign)
    foreign_file.execute("CREATE TABLE x (y)")
    foreign_file.close()
    text.write_text("no archive")
    for path in (cut, foreign, text, tmp_path / "missing.db"):
        with pytest.raises(CommandError):
            call_command("import_memory", "--tenant", "tenant-b", str(path))
    assert not (tmp_path / "missing.db").exists()
    with pytest.raises(CommandError, match="another archive: its digest is"):
        call_command("import_memory", "--tenant", "tenant-b", "--digest", "x", str(complete))
    with tenant_scope(tenant_b.id):
        assert not Message.objects.exists()


def test_commands_print_their_results(
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
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]
    assert read_manifest(path).tenant == "tenant-a"


def test_conflicting_rows_prevent_the_import(
    tenant_a: Tenant, tenant_b: Tenant, full: None, tmp_path: Path
) -> None:
    path = tmp_path / "a.db"
    export_memory(tenant_a, path)
    with tenant_scope(tenant_b.id):
        models.Agent.objects.create(name="ada")
        with pytest.raises(CommandError, match=r"its agents cannot be imported: .* is taken"):
            call_command("import_memory", "--tenant", "tenant-b", str(path))
        assert not Message.objects.exists()
    with tenant_scope(tenant_a.id):
        models.Agent.objects.update(persona="Changed since.")
    import_memory(tenant_a, path)
    with tenant_scope(tenant_a.id):
        assert models.Agent.objects.get().persona == "Changed since."


def test_archive_of_one_person_quotes_no_words_of_another(
    tenant_a: Tenant, agent: models.Agent, tmp_path: Path
) -> None:
    said: Any = {
        "tenant_id": tenant_a.id, "agent_id": agent.id, "thread_id": "shared", "channel": "slack",
    }  # fmt: skip
    said_by_bob, _ = record_message(**said, user_id="bob", role="user", content="I like cheese.")
    asked, _ = record_message(**said, user_id="maria", role="user", content="And I?")
    reply, _ = record_message(
        **said, user_id="maria", role="assistant", content="Olives.", in_reply_to=asked.id
    )
    with tenant_scope(tenant_a.id):
        turn = {"role": "user", "content": "bob: I like cheese.\n\nAs a program says: cheese."}
        store_trace(
            agent.id, "maria", reply_id=reply.pk, sources=[said_by_bob.pk, asked.pk],
            query="And I?", prompt=prompt_of(turn),
        )  # fmt: skip
    export_memory(tenant_a, tmp_path / "maria.db", user_id="maria")
    assert b"cheese" not in (tmp_path / "maria.db").read_bytes()


def test_imports_with_the_same_new_people_do_not_deadlock(
    tenant_a: Tenant, tenant_b: Tenant, make_tenant: MakeTenant, tmp_path: Path
) -> None:
    agent_id, target, both_have_messages = uuid4(), make_tenant(), Barrier(2)
    for tenant, writer, known in ((tenant_a, "bob", "eva"), (tenant_b, "eva", "bob")):
        message = {"agent_id": agent_id, "user_id": writer, "thread_id": "t", "channel": "rest"}
        record_message(tenant_id=tenant.id, role="user", content="Hello.", **message)
        entry = {"tenant_id": tenant.id, "agent_id": agent_id, "user_id": known}
        facts.LongTermMemory().store(MemoryEntry(content="A fact.", metadata={}, **entry))
        export_memory(tenant, tmp_path / f"{tenant.slug}.db")

    def wait(kind: str, new: int, rows: int) -> None:
        with suppress(BrokenBarrierError):
            if kind == "messages":
                both_have_messages.wait(2)

    def load(tenant: Tenant) -> None:
        try:
            import_memory(target, tmp_path / f"{tenant.slug}.db", say=wait)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(load, (tenant_a, tenant_b))) == [None, None]
