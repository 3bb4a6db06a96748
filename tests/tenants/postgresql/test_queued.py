"""Statements that go with the next message: in their tenant and transaction, or not at all."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DataError

from konstruct.orchestrator.models import Agent
from tenants import transaction
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import AccessEvent, Action, ActorKind
from tenants.context import tenant_connection, tenant_scope
from tenants.models import Tenant
from tests.messages import messages_to_postgres

PROGRAM = Actor(ActorKind.PROGRAM, "1", "crm")


def record(subject: str, **options: Any) -> Any:
    return record_access(Action.VIEW, subject, by=PROGRAM, **options)


def recorded() -> list[str]:
    return list(AccessEvent.objects.order_by("id").values_list("subject", flat=True))


def make_and_fail_at_commit() -> None:
    with transaction.atomic():
        Agent.objects.create(name="undone")
        tenant_connection().queue("SELECT 1/0", {})


@pytest.fixture
def inside(tenant_a: Tenant) -> Iterator[None]:
    with tenant_scope(tenant_a.id):
        Agent.objects.exists()  # begins the test's own transaction
        yield


def test_queued_statement_is_sent_in_its_tenant(tenant_a: Tenant, tenant_b: Tenant) -> None:
    with tenant_scope(tenant_a.id):
        record("of a")
    with tenant_scope(tenant_b.id):
        record("of b")
        assert recorded() == ["of b"]
    with tenant_scope(tenant_a.id):
        assert recorded() == ["of a"]


@pytest.mark.django_db(transaction=True)
def test_queued_statement_is_sent_with_the_next_statement_outside_of_a_transaction(
    inside: None,
) -> None:
    with messages_to_postgres() as messages:
        lost = record("lost", with_next=True)
        with pytest.raises(DataError):
            Agent.objects.filter(pk="0" * 32).extra(where=["1/0 = 1"]).exists()
        done = record("done", with_next=True)
        Agent.objects.exists()
        at_once = record("at once")
    assert len(messages) == 3
    assert (lost.is_done, done.is_done, at_once.is_done) == (False, True, True)
    assert recorded() == ["done", "at once"]


@pytest.mark.django_db(transaction=True)
def test_queued_statement_in_a_transaction_is_sent_with_the_commit_or_dropped(inside: None) -> None:
    with messages_to_postgres() as messages, transaction.atomic():
        Agent.objects.exists()
        record("committed")
    assert [message.split()[0] for message in messages[-1]][-2:] == ["WITH", "COMMIT"]
    with transaction.atomic():
        record("undone")
        transaction.set_rollback(True)
    with pytest.raises(DataError):
        make_and_fail_at_commit()
    assert recorded() == ["committed"]
    assert not Agent.objects.filter(name="undone").exists()
