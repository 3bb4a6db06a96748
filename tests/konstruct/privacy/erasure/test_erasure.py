"""Erasing a person: none of their rows is left, and no other row is removed."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connections
from django.db.models.functions import Now
from django_redis import get_redis_connection

from konstruct.api.auth.keys import issue_key
from konstruct.api.models import ApiKey, IdempotencyRecord
from konstruct.consistency import verify
from konstruct.orchestrator.identities import channel_identities, erasure_requests
from konstruct.orchestrator.models import Agent, AnswerOptions, Escalation, PendingReply, ToolCall
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from konstruct.privacy import jobs
from konstruct.privacy.archive.exporting import export_memory
from konstruct.privacy.erasure import messages, person
from konstruct.privacy.erasure.erasing import carry_out
from memory import indexing as embeddings
from memory.context import SessionStore
from memory.conversations.short_term import append_message, clear_window, get_recent_messages
from memory.conversations.transcript import add_items
from memory.facts import LongTermMemory
from memory.long_term import store_embedding
from memory.models import MemoryEntry, Message, PendingEmbedding
from tenants import transaction
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import AccessEvent, Action, ActorKind, ErasureRequest, about_people
from tenants.audit.people import Person, PersonBeingErased, hold_people
from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tenants.redis_keys import escape_part, idempotency_key, partial_reply_key
from tests import database
from tests.konstruct.conftest import SendMessage
from tests.konstruct.privacy.conftest import save_session, send_in_pipeline, tool

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("files_left_alone"),
]

MARIA = "U07:maria%"
SECRET = "walnuts"
EVA = Actor(ActorKind.PERSON, "1", "eva")


@pytest.fixture
def full(tenant_a: Tenant, agent: Agent, send_message: SendMessage) -> Message:
    """Create Maria and Bob with rows of every kind. Return a message of Maria."""
    statement = send_message(
        f"I am allergic to {SECRET}.", MARIA, "hers", idempotency_key="rest/k1"
    )
    send_message(f"No {SECRET} please, and my dog is Rex.", MARIA, "shared")
    bobs = send_message("I like cheese.", "bob", "shared")
    send_message("My cat is Tom.", "bob", "his")
    for user, content in ((MARIA, f"Maria avoids {SECRET}."), ("bob", "Bob eats all.")):
        entry = MemoryEntry(
            tenant_id=tenant_a.id, agent_id=agent.id, user_id=user, content=content,
            metadata={"topic": "food"},
        )  # fmt: skip
        memory_id = LongTermMemory().store(entry)
        LongTermMemory().update(memory_id, tenant_a.id, content=content + " Surely.")
    vector = [1.0] + [0.0] * 383
    for user, content in ((MARIA, f"Directly: {SECRET}."), ("bob", "Directly: cheese.")):
        store_embedding(tenant_a.id, agent.id, user, content, "user", vector)
    clear_window(tenant_a.id, agent.id, MARIA)
    send_message("After the clear.", MARIA, "hers")
    append_message(tenant_a.id, agent.id, MARIA, "user", f"By itself: {SECRET}")
    waiting, _ = accept(
        Incoming(agent.id, MARIA, "hers", "rest", f"Are there {SECRET}?"), tenant_id=tenant_a.id
    )
    save_session(tenant_a, "hers", f"Session of {SECRET}.")
    save_session(tenant_a, "his", "Session of cheese.")
    issue_key(tenant_id=tenant_a.id, name="her phone", user_id=MARIA)
    issue_key(tenant_id=tenant_a.id, name="all")
    get_redis_connection("default").set(idempotency_key(tenant_a.id, statement.id), "1")
    get_redis_connection("default").xadd(
        partial_reply_key(tenant_a.id, statement.id), {"text": SECRET}
    )
    with tenant_scope(tenant_a.id):
        for user, message in ((MARIA, statement), ("bob", bobs)):
            helped(message, user)
        fact = MemoryEntry.objects.get(user_id=MARIA, version_of=None)
        IdempotencyRecord.objects.create(operation="POST /f", key="k", digest="d", made=fact.pk)
        IdempotencyRecord.objects.create(operation="POST /f", key="l", digest="d", made=agent.pk)
        record_access(Action.VIEW, "fact", by=EVA, subject_id=fact.pk)
        record_access(Action.SEARCH, "people", by=EVA, people=[MARIA, "bob"])
        record_access(Action.VIEW, "person", by=EVA, user_id=MARIA)
        record_access(Action.CLEAR, "session", by=EVA, subject_id="hers")
        record_access(Action.VIEW, "person", by=EVA, user_id="bob")
    assert waiting.pk
    return statement


def helped(message: Message, user: str) -> None:
    """Give the user a Slack identity, an escalation, and a request for consent."""
    channel_identities.link(
        channel_identities.identity_of("slack", "T1", f"{user} there"), user, by="eva"
    )
    scope = {"agent_id": message.agent_id, "user_id": user, "thread_id": message.thread_id}
    Escalation.objects.create(
        **scope, channel="rest", opened_by="user", reason=message.content, resolved_at=Now()
    )
    add_items(
        message.agent_id, user, message.thread_id,
        [({"said": message.content}, message.pk), ({"call": message.content}, None)],
    )  # fmt: skip
    AnswerOptions.objects.create(
        message=message,
        options={"tools": [{"said": message.content}]},
        instructions=[f"The user has said: {message.content}"],
    )
    ToolCall.objects.create(
        **scope, message=message, round=0, position=0, call_id="c", name="remember_fact",
        arguments={"fact": message.content}, state="denied", expires_at=Now(),
    )  # fmt: skip


def everything(tenant: Tenant) -> str:
    """Return all rows of the tenant as text, and all keys and values of the cache."""
    found = []
    with database.as_owner(), tenant_scope(tenant.id), connection.cursor() as cursor:
        for table in person.tables_of_tenant():
            if table != "audit_erasurerequest":
                cursor.execute(f"SELECT (t.*)::text FROM {tenant.schema_name}.{table} AS t")
                found += [f"{table}: {row}" for (row,) in cursor.fetchall()]
            if table in ("checkpoint_blobs", "checkpoint_writes"):
                cursor.execute(f"SELECT encode(blob, 'escape') FROM {tenant.schema_name}.{table}")
                found += [f"{table}: {row}" for (row,) in cursor.fetchall()]
    cache = get_redis_connection("default")
    for key in cache.scan_iter():
        value = cache.lrange(key, 0, -1) if cache.type(key) == b"list" else b""
        found.append(f"{key!r} {value!r}")
    return "\n".join(found)


def traces_of_maria(text: str, statement: Message) -> list[str]:
    words = (SECRET, MARIA, escape_part(MARIA), str(statement.pk), "Rex")
    # The random words of pg_dump's \\restrict can contain one.
    lines = [line for line in text.splitlines() if "restrict " not in line]
    return [line for line in lines if any(word in line for word in words)]


def test_all_rows_of_the_person_are_deleted_and_none_of_others(
    tenant_a: Tenant, full: Message, agent: Agent, tmp_path: Path, capsys: Any
) -> None:
    bobs_window = get_recent_messages(tenant_a.id, agent.id, "bob")
    assert len(traces_of_maria(everything(tenant_a), full)) == 43
    capsys.readouterr()
    with database.as_owner():
        call_command("erase_user", "--tenant", "tenant-a", "--user", MARIA, "--yes", "--json")
    receipt = json.loads(capsys.readouterr().out)
    assert traces_of_maria(everything(tenant_a), full) == []

    name = connections["default"].settings_dict["NAME"]
    dump = tool("pg_dump", "--dbname", name, "--exclude-table-data", "*.audit_erasurerequest")
    assert "Bob eats all." in dump
    assert traces_of_maria(dump, full) == []
    archive = tmp_path / "a.db"
    export_memory(tenant_a, archive)
    for trace in (SECRET, MARIA, str(full.pk)):
        assert trace.encode() not in archive.read_bytes()

    tables = receipt["tables"]
    assert tables["memory_message"]["removed"] == 8
    assert len(tables["memory_message"]["sha256_of_ids"]) == 64
    assert tables["memory_memoryentry"]["removed"] == 2
    assert tables["checkpoints"] == {"removed": 1}
    assert tables["memory_pendingembedding"]["removed"] == 1
    assert tables["api_apikey"]["removed"] == tables["api_creation"]["removed"] == 1
    assert receipt["cache_keys"] == 3
    assert (receipt["left"], receipt["threads_shared_with_others"]) == (0, 1)
    assert SECRET not in json.dumps(receipt)

    assert verify(tenant_a.id, "a").findings == []
    assert get_recent_messages(tenant_a.id, agent.id, "bob") == bobs_window
    assert get_recent_messages(tenant_a.id, agent.id, MARIA) == []
    with tenant_scope(tenant_a.id):
        assert set(Message.objects.values_list("user_id", flat=True)) == {"bob"}
        assert MemoryEntry.objects.count() == 2
        assert SessionStore().checkpointer.get({"configurable": {"thread_id": "his"}})
        assert ApiKey.objects.get().name == "all"
        assert AccessEvent.objects.filter(action=Action.VIEW).count() == 3
        assert AccessEvent.objects.filter(about_people("bob")).count() == 2
        assert not AccessEvent.objects.filter(about_people(MARIA)).exists()
        request = ErasureRequest.objects.get()
    assert (request.done_at is None, request.progress) == (False, None)


def test_one_agent_forgets_and_the_others_do_not(
    tenant_a: Tenant, agent: Agent, full: Message, send_message: SendMessage
) -> None:
    with tenant_scope(tenant_a.id):
        bert = Agent.objects.create(name="bert")
    send_in_pipeline(tenant_a, bert, "Bert may know of walnuts.", MARIA, "with bert")
    with database.as_owner():
        call_command(
            "erase_user", "--tenant", "tenant-a", "--user", MARIA, "--agent", "ada", "--yes"
        )
    with tenant_scope(tenant_a.id):
        messages = Message.objects.filter(user_id=MARIA)
        assert set(messages.values_list("agent_id", flat=True)) == {bert.id}
        assert ApiKey.objects.count() == 2
    assert len(get_recent_messages(tenant_a.id, bert.id, MARIA)) == 2
    assert get_recent_messages(tenant_a.id, agent.id, MARIA) == []
    assert verify(tenant_a.id, "a").findings == []


def die(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_erasure_interrupted_at_every_step_continues(
    tenant_a: Tenant, full: Message, owner: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = erasure_requests.request_erasure(MARIA, by=EVA)
    for step in (
        "erasing.fetch_column",
        "person.remove_keys",
        "messages.erase_batch",
        "person.delete_rows",
        "person.count_remaining",
        "person.purge_files",
        "erasing._write_receipt",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"konstruct.privacy.erasure.{step}", die)
            with pytest.raises(KeyboardInterrupt):
                carry_out(request)
    assert jobs.ERASE.run_due() == 1
    request.refresh_from_db()
    assert request.receipt["tables"]["memory_message"]["removed"] == 8
    assert traces_of_maria(everything(tenant_a), full) == []
    assert jobs.ERASE.run_due() == 0


def test_nothing_is_written_about_the_person_during_an_erasure(
    tenant_a: Tenant, agent: Agent, full: Message, owner: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    erase, refused = messages.erase_batch, []

    def talkative(*args: Any, **options: Any) -> int:
        removed = erase(*args, **options)
        try:
            incoming = Incoming(agent.id, MARIA, "hers", "rest", f"More {SECRET}.")
            accept(incoming, tenant_id=tenant_a.id)
        except PersonBeingErased as error:
            refused.append(error)
        return removed

    monkeypatch.setattr(messages, "erase_batch", talkative)
    request = carry_out(erasure_requests.request_erasure(MARIA, by=EVA))
    assert len(refused) == request.receipt["rounds"] == 1
    assert request.receipt["tables"]["memory_message"]["removed"] == 8
    assert traces_of_maria(everything(tenant_a), full) == []
    assert not PendingReply.objects.exists()
    assert not PendingEmbedding.objects.exists()


def test_what_was_begun_before_an_erasure_writes_nothing_after_it(
    tenant_a: Tenant, agent: Agent, send_message: SendMessage, owner: None
) -> None:
    send_message("Hello.", "maria")
    seen = hold_people(["maria", "new", "bob"])
    for user_id in ("maria", "new"):
        carry_out(erasure_requests.request_erasure(user_id, by=EVA))
        with pytest.raises(PersonBeingErased):
            hold_people([user_id], since=seen)
    assert hold_people(["bob"], since=seen) == {"bob": seen["bob"]}
    carry_out(erasure_requests.request_erasure("bob", by=EVA, agent_id=agent.pk))
    with pytest.raises(PersonBeingErased):
        hold_people(["bob"], since=seen)
    # Afterwards the person is a new one.
    assert hold_people(["maria"])["maria"] != seen["maria"]


def test_an_erasure_waits_for_a_transaction_that_writes(
    tenant_a: Tenant, send_message: SendMessage, agent: Agent
) -> None:
    send_message("Hello.", "maria")
    with tenant_scope(tenant_a.id):
        request = erasure_requests.request_erasure("bob", by=EVA)
        with pytest.raises(PersonBeingErased):
            hold_people(["maria", "bob"])
    assert request.done_at is None

    def erase() -> None:
        try:
            with database.as_owner(), tenant_scope(tenant_a.id):
                carry_out(erasure_requests.request_erasure("maria", by=EVA))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads:
        with tenant_scope(tenant_a.id), transaction.atomic():
            hold_people(["maria"])
            erasing = threads.submit(erase)
            with pytest.raises(TimeoutError):
                erasing.result(timeout=1)
            Message.objects.create(
                agent_id=agent.pk, user_id="maria", thread_id="t", channel="rest", role="user",
                content="Written before.",
            )  # fmt: skip
        erasing.result(timeout=60)
    with tenant_scope(tenant_a.id):
        assert not Message.objects.filter(user_id="maria").exists()


def test_unknown_user_gets_an_empty_receipt(tenant_a: Tenant, owner: None) -> None:
    request = carry_out(erasure_requests.request_erasure("nobody", by=EVA, reason="asked by mail"))
    assert request.receipt["found"] is False
    assert request.receipt["tables"] == {}
    assert not Person.objects.exists()


def test_the_application_can_neither_erase_nor_write_receipts(
    tenant_a: Tenant, full: Message
) -> None:
    with tenant_scope(tenant_a.id):
        request = erasure_requests.request_erasure(MARIA, by=EVA)
        with pytest.raises(Exception, match="permission denied"):
            carry_out(request)
        with pytest.raises(Exception, match="permission denied"):
            ErasureRequest.objects.update(receipt={})
        assert Message.objects.filter(user_id=MARIA).count() == 8


def with_instructions(text: str) -> AnswerOptions:
    return AnswerOptions(options={}, instructions=[text])


@pytest.mark.parametrize("whole_person", [True, False], ids=["a person", "a message"])
def test_instructions_of_an_application_are_erased_with_person_and_message(
    tenant_a: Tenant, send_message: SendMessage, whole_person: bool
) -> None:
    """They are in the options while the message waits, and then in the prompt of its reply."""
    message = send_message(
        "Where is my cat?",
        "carol",
        "hers",
        options=with_instructions("Carol's code is heliotrope."),
    )
    if whole_person:
        waiting = Incoming(
            message.agent_id,
            "carol",
            "hers",
            "rest",
            "And now?",
            options=with_instructions("Code: heliotrope."),
        )
        accept(waiting, tenant_id=tenant_a.id)
    embeddings.drain(tenant_a.id)
    kept = [line.split(":")[0] for line in everything(tenant_a).splitlines() if "heliot" in line]
    assert set(kept) == {"memory_recallevent"} | (
        {"orchestrator_answeroptions"} if whole_person else set()
    )
    with database.as_owner(), tenant_scope(tenant_a.id):
        if whole_person:
            carry_out(erasure_requests.request_erasure("carol", by=EVA))
        else:
            erasure_requests.request_message_erasure(
                agent_id=message.agent_id,
                user_id="carol",
                thread_id="hers",
                message_id=message.pk,
                by=EVA,
            )
            assert jobs.ERASE_MESSAGES.run_due() == 1
    assert "heliotrope" not in everything(tenant_a)
