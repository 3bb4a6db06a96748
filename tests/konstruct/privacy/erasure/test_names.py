"""Names of people belong to their messages: merged, erased, retained, imported and verified."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.identities.erasure_requests import (
    request_erasure,
)
from konstruct.orchestrator.models import Agent, HistoryMerge
from konstruct.privacy import merge
from konstruct.privacy.archive import export_memory, import_memory
from konstruct.privacy.erasure import carry_out
from konstruct.privacy.retention import apply_rules
from memory.conversations.importing import ImportedTurn, import_turns
from memory.models import Message, PersonName
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import Action, ActorKind, RetentionRule
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests import database
from tests.konstruct.conftest import SendMessage
from tests.konstruct.privacy.erasure.test_erasure import everything

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

EVA = Actor(ActorKind.PERSON, "1", "eva")


@pytest.fixture
def named_message(tenant_a: Tenant, send_message: SendMessage) -> Message:
    """Create Maria under two names, and Bob. Return the message with her first name."""
    first = send_message("Hello.", "maria", "t1", name="Mariella")
    send_message("Hello again.", "maria", "t2", name="Maria")
    send_message("Hello.", "bob", "t3", name="Bob")
    return first


def kept(tenant: Tenant) -> list[tuple[str, str]]:
    with tenant_scope(tenant.id):
        found = PersonName.objects.order_by("user_id", "name").values_list("user_id", "name")
        return list(found)


def test_names_follow_a_link(
    tenant_a: Tenant, named_message: Message, send_message: SendMessage
) -> None:
    send_message("From Slack.", "U1", "dm", name="mia")
    send_message("From Slack.", "U1", "dm", name="Maria")
    with tenant_scope(tenant_a.id):
        identity = channel_identities.identity_of("slack", "T1", "U1")
        channel_identities.link(identity, "maria", by="eva")
    with database.as_owner(), tenant_scope(tenant_a.id):
        merge.carry_out(HistoryMerge.objects.get(), min_age=timedelta(0))
    assert kept(tenant_a) == [
        ("bob", "Bob"), ("maria", "Maria"), ("maria", "Mariella"), ("maria", "mia"),
    ]  # fmt: skip


def test_erased_name_leaves_no_data(
    tenant_a: Tenant, named_message: Message, files_left_alone: None, owner: None
) -> None:
    record_access(Action.SEARCH, "people", by=EVA, query="Mariella")
    assert carry_out(request_erasure("maria", by=EVA)).done_at is not None
    assert kept(tenant_a) == [("bob", "Bob")]
    assert "mariella" not in everything(tenant_a).lower()


def test_name_is_deleted_with_messages_past_retention(
    tenant_a: Tenant, agent: Agent, named_message: Message, owner: None
) -> None:
    long_ago = timezone.now() - timedelta(days=90)
    turn = {"agent_id": agent.pk, "thread_id": "t", "role": "user", "created_at": long_ago}
    old = [
        ImportedTurn(external_id=name, user_id="maria", content="Hi", name=name, **turn)
        for name in ("Maria", "Marie")
    ]
    import_turns(tenant_a.id, old)
    assert ("maria", "Marie") in kept(tenant_a)
    RetentionRule.objects.create(days=30)
    assert [removed.messages for removed in apply_rules()] == [2]
    assert kept(tenant_a) == [("bob", "Bob"), ("maria", "Maria"), ("maria", "Mariella")]


def test_an_import_of_an_archive_brings_names(
    tenant_a: Tenant, tenant_b: Tenant, named_message: Message, tmp_path: Path
) -> None:
    export_memory(tenant_a, tmp_path / "a.sqlite")
    with database.as_owner():
        import_memory(tenant_b, tmp_path / "a.sqlite")
    assert kept(tenant_b) == kept(tenant_a) != []
