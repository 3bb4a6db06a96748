"""verify_memory: a consistent memory has no findings; each inconsistency is found and repaired."""

import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from konstruct.channels import delivery as deliveries, inbox
from konstruct.consistency import LOST, NO_JOB, NO_QUOTE, NOT_EMBEDDED, verify
from konstruct.orchestrator.identities import channel_identities, erasure_requests
from konstruct.orchestrator.models import Agent, HistoryMerge, PendingReply
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from memory import indexing
from memory.conversations.short_term import append_message
from memory.facts import SYSTEM, LongTermMemory, Quote, embed_facts, record_candidate
from memory.models import MemoryEntry, Message, PendingEmbedding
from tenants import transaction
from tenants.audit.access_log import Actor
from tenants.audit.models import ActorKind, RetentionRule
from tenants.context import connection, tenant_scope
from tenants.models import Job, Tenant
from tests.database import as_owner
from tests.konstruct.conftest import SendMessage

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

EVA = Actor(ActorKind.PERSON, "1", "eva")


def kinds(tenant: Tenant, *, repair: bool = False) -> list[str]:
    """Return the kinds of current findings."""
    return [finding.kind for finding in verify(tenant.id, "a", repair=repair).findings]


def know(tenant: Tenant, content: str, metadata: dict[str, Any]) -> None:
    entry = MemoryEntry(tenant_id=tenant.id, content=content, metadata=metadata)
    LongTermMemory().store(entry)


def execute(tenant: Tenant, sql: str, *parameters: object) -> None:
    with tenant_scope(tenant.id), connection.cursor() as cursor:
        cursor.execute(sql, parameters)


def test_consistent_memory_has_no_findings(tenant_a: Tenant, send_message: SendMessage) -> None:
    send_message("My dog Rex was born in May.")
    send_message("…")
    send_message("你好，我住在上海。", user_id="李:雷")
    know(tenant_a, "Rex is a dog.", {"a": {"b": [1, "x"]}})
    append_message(tenant_a.id, Agent().id, "nobody", "user", "by itself")
    ledger = verify(tenant_a.id, "a")
    assert ledger.findings == []
    assert ledger.counts == {
        "accepted": 3, "answered": 3, "failed": 0, "held": 0, "waiting": 0, "to be embedded": 6,
        "embedded": 6, "pending": 0, "facts": 1,
    }  # fmt: skip


def test_message_without_a_reply_job_is_enqueued(
    tenant_a: Tenant, agent: Agent, send_message: SendMessage
) -> None:
    message, _ = accept(Incoming(agent.id, "maria", "t", "rest", "Hello?"), tenant_id=tenant_a.id)
    with tenant_scope(tenant_a.id):
        PendingReply.objects.all().delete()
        assert kinds(tenant_a) == [LOST]
        assert kinds(tenant_a, repair=True) == []
        assert PendingReply.objects.get().message_id == message.id


def let_wait(tenant: Tenant, agent: Agent) -> None:
    """Create a message with a reply, an embedding, a delivery, an event, and an owner job due."""
    accept(Incoming(agent.id, "maria", "t", "rest", "Hello?"), tenant_id=tenant.id)
    with tenant_scope(tenant.id), transaction.atomic():
        deliveries.enqueue(Message.objects.get(), channel="slack", address={})
        inbox.enqueue(channel="slack", workspace="T1", key="slack/1", event={})
        erasure_requests.request_erasure("nobody", by=EVA)
        erasure_requests.request_message_erasure(
            agent_id=agent.id, user_id="maria", thread_id="t", by=EVA
        )
        HistoryMerge.objects.create(from_user="a", user_id="b", requested_by="eva")
        channel_identities.HISTORY_MERGES.enqueue(HistoryMerge.objects.get().pk)
        RetentionRule.objects.create(days=10)


KINDS = [
    "arrival", "delivery", "embedding", "erasure", "history merge", "message erasure", "retention",
]  # fmt: skip


def test_rows_without_a_job_get_one(tenant_a: Tenant, agent: Agent) -> None:
    """As after a restore of one tenant's schema. Includes each kind of row that has a job."""
    let_wait(tenant_a, agent)
    assert kinds(tenant_a) == []
    with tenant_scope(tenant_a.id):
        before = set(Job.objects.values_list("kind", "key"))
        assert sorted(kind for kind, _ in before) == sorted([*KINDS, "reply"])
        Job.objects.all().delete()
        assert sorted(kinds(tenant_a)) == sorted([NO_JOB] * len(KINDS) + [LOST])
        assert kinds(tenant_a, repair=True) == []
        assert set(Job.objects.values_list("kind", "key")) == before


def test_message_without_an_embedding_job_is_enqueued(tenant_a: Tenant, agent: Agent) -> None:
    accept(Incoming(agent.id, "maria", "t", "rest", "Hello?"), tenant_id=tenant_a.id)
    with tenant_scope(tenant_a.id):
        PendingEmbedding.objects.all().delete()
    assert kinds(tenant_a) == [NOT_EMBEDDED]
    assert kinds(tenant_a, repair=True) == []
    assert indexing.drain(tenant_a.id).stored == 1
    assert kinds(tenant_a) == []


@pytest.mark.parametrize("table", ["memory_indexedmessage", "memory_conversationembedding"])
def test_message_without_index_rows_is_enqueued(
    tenant_a: Tenant, send_message: SendMessage, table: str
) -> None:
    send_message("My dog Rex was born in May.")
    with as_owner():
        execute(tenant_a, f"DELETE FROM {table}")
        assert kinds(tenant_a) == [NOT_EMBEDDED, NOT_EMBEDDED]
        assert kinds(tenant_a, repair=True) == []
        indexing.drain(tenant_a.id)
        assert kinds(tenant_a) == []


def test_extracted_facts_without_words_of_a_message_are_retracted(
    tenant_a: Tenant, agent: Agent, send_message: SendMessage
) -> None:
    message = send_message("I live in Lisbon, and I drink tea.")
    with tenant_scope(tenant_a.id):
        for words in ("Lisbon", "tea"):
            entry = MemoryEntry(
                tenant_id=tenant_a.id, agent_id=agent.id, user_id="maria", content=words,
                kind="observed",
            )  # fmt: skip
            embed_facts([entry])
            start = message.content.index(words)
            record_candidate(entry, [Quote(message, start, start + len(words))], author=SYSTEM)
    assert kinds(tenant_a) == []

    execute(tenant_a, "DELETE FROM memory_factevidence WHERE quote = 'tea'")
    assert kinds(tenant_a) == [NO_QUOTE]
    with as_owner():
        execute(tenant_a, "UPDATE memory_factevidence SET quote = 'Porto'")
    assert kinds(tenant_a) == [NO_QUOTE, NO_QUOTE]
    assert kinds(tenant_a, repair=True) == []
    with tenant_scope(tenant_a.id):
        assert {*MemoryEntry.objects.values_list("state", flat=True)} == {"retracted"}


def test_command_prints_findings_and_exits_with_1(
    tenant_a: Tenant, agent: Agent, send_message: SendMessage, capsys: Any
) -> None:
    send_message("Hello.")
    call_command("verify_memory", "--tenant", "tenant-a")
    assert capsys.readouterr().out == (
        "tenant-a: 1 accepted = 1 answered + 0 given up + 0 held + 0 waiting;"
        " 2 messages = 2 embedded + 0 pending; 0 facts\n"
    )
    lost, _ = accept(Incoming(agent.id, "maria", "t", "rest", "?"), tenant_id=tenant_a.id)
    with tenant_scope(tenant_a.id):
        PendingReply.objects.all().delete()
    with pytest.raises(CommandError, match="1 findings: see --repair") as caught:
        call_command("verify_memory", "--json")
    assert caught.value.returncode == 1
    document = {report["tenant"]: report for report in json.loads(capsys.readouterr().out)}
    assert document["tenant-b"]["findings"] == []
    assert document["tenant-a"]["findings"] == [{"kind": LOST, "subject": str(lost.id)}]
    call_command("verify_memory", "--repair")
    assert f"repaired: 1 × {LOST}\n    {lost.id}\n" in capsys.readouterr().out
