"""Copies for the second agent of a thread are erased, moved, exported and verified."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from konstruct.consistency import verify
from konstruct.orchestrator.handoff import handovers
from konstruct.orchestrator.handoff.escalations import OpenedBy, Thread
from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.orchestrator.models import Agent, Escalation, HistoryMerge
from konstruct.privacy.archive.exporting import export_memory
from konstruct.privacy.archive.importing import import_memory
from konstruct.privacy.erasure.erasing import carry_out
from konstruct.privacy.erasure.messages import apply_rules
from konstruct.privacy.jobs import merge_histories
from memory.conversations.short_term import get_recent_messages
from memory.models import Message, RecallEvent
from memory.recall import recall
from tenants.audit.access_log import Actor
from tenants.audit.models import ActorKind, RetentionRule
from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tests import database
from tests.konstruct.conftest import SendMessage

pytestmark = pytest.mark.django_db(transaction=True)

EVA = Actor(ActorKind.PERSON, "1", "eva")
QUESTION = "What is my invoice number?"


@pytest.fixture
def bert(tenant_a: Tenant) -> Agent:
    with tenant_scope(tenant_a.id):
        return Agent.objects.create(name="bert")


@pytest.fixture
def handed(
    tenant_a: Tenant, agent: Agent, bert: Agent, send_message: SendMessage
) -> Iterator[Tenant]:
    """A thread of ada that bert answers, and one that he does not."""
    first = send_message("My boat is called Argo.")
    send_message("I like cheese.", "bob", "his")
    with tenant_scope(tenant_a.id):
        handovers.hand_over(
            Thread.of(first), bert.id, opened_by=OpenedBy.PERSON, name="eva", reason="Invoices."
        )
    send_message("My invoice number is 4711.")
    yield tenant_a
    with database.as_owner(), tenant_scope(tenant_a.id):
        assert verify(tenant_a.id, "a").findings == []


def remembered(tenant: Tenant, agent: Agent, user_id: str = "maria") -> list[str]:
    return [hit.content for hit in recall(tenant.id, agent.id, user_id, QUESTION).hits]


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["everybody's", "ada", "bert"])
def test_erasure_removes_memories_of_all_agents_of_a_thread(
    scope: str, handed: Tenant, agent: Agent, bert: Agent
) -> None:
    agent_id = {"everybody's": None, "ada": agent.id, "bert": bert.id}[scope]
    with database.as_owner(), tenant_scope(handed.id):
        request = carry_out(request_erasure("maria", by=EVA, agent_id=agent_id))
        assert request.done_at is not None
        both = {agent.id, bert.id}
        left = set(Message.objects.filter(user_id="maria").values_list("agent_id", flat=True))
        assert left == both - (both if agent_id is None else {agent_id})
        of_agent = RecallEvent.objects.filter(user_id="maria", agent_id=agent_id or bert.id)
        assert not of_agent.exists()
        assert Message.objects.filter(user_id="bob").count() == 2


def test_merge_moves_copies_of_handovers(handed: Tenant, agent: Agent, bert: Agent) -> None:
    with tenant_scope(handed.id):
        identity = channel_identities.identity_of("slack", "T1", "maria")
        channel_identities.link(identity, "otto", by="eva")
    with database.as_owner(), tenant_scope(handed.id):
        assert merge_histories(HistoryMerge.objects.get(), min_age=timedelta(0))
        assert not Message.objects.filter(user_id="maria").exists()
        assert Escalation.objects.open().get().user_id == "otto"
        assert "My invoice number is 4711." in remembered(handed, bert, "otto")
        turns = get_recent_messages(handed.id, bert.id, "otto")
        assert turns[0]["content"] == "My invoice number is 4711."


@pytest.mark.slow
def test_an_archive_has_all_of_it(
    handed: Tenant, tenant_b: Tenant, agent: Agent, bert: Agent, tmp_path: Path
) -> None:
    export_memory(handed, tmp_path / "a.db", user_id="maria")
    with database.as_owner():
        import_memory(tenant_b, tmp_path / "a.db")
    with tenant_scope(tenant_b.id):
        assert "My invoice number is 4711." in remembered(tenant_b, bert)
        reply = Message.objects.get(in_reply_to__content="My invoice number is 4711.")
        assert (reply.agent_id, reply.answered_by_id) == (agent.id, bert.id)
        assert RecallEvent.objects.get(reply=reply).agent_id == bert.id
        assert Escalation.objects.open().get().to_agent_id == bert.id


@pytest.mark.slow
@pytest.mark.parametrize("of_bert", [True, False])
def test_retention_of_one_agent_leaves_the_other_ones_memory(
    of_bert: bool, handed: Tenant, agent: Agent, bert: Agent
) -> None:
    short, other = (bert, agent) if of_bert else (agent, bert)
    with database.as_owner(), tenant_scope(handed.id):
        with connection.cursor() as cursor:
            cursor.execute("UPDATE memory_message SET created_at = created_at - interval '9 days'")
        RetentionRule.objects.create(agent_id=short.id, days=7)
        apply_rules()
        assert not Message.objects.filter(agent_id=short.id).exists()
        assert Message.objects.filter(agent_id=other.id, user_id="maria").exists()
