"""Retention: expired messages are removed completely; without a rule none is removed."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db.models import F
from django.db.models.functions import Now
from django_redis import get_redis_connection

from konstruct.consistency import verify
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.retention_rules import preview, set_days
from konstruct.privacy.erasure import messages
from memory import indexing
from memory.conversations.short_term import append_message, clear_window, get_recent_messages
from memory.conversations.transcript import ImportedTurn, add_items, import_turns
from memory.models import ConversationItem, Message, Scope, WindowClear
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import AccessEvent, Action, ActorKind, RetentionRule
from tenants.context import tenant_scope
from tenants.models import Tenant
from tenants.redis_keys import memory_short_key
from tests import database
from tests.konstruct.conftest import SendMessage

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def history(tenant_a: Tenant, agent: Agent) -> Callable[..., None]:
    """Record turns of a user from the given number of days ago."""

    def history(user_id: str, *days: int) -> None:
        now = datetime.now(UTC)
        import_turns(
            tenant_a.id,
            [
                ImportedTurn(
                    f"{user_id} {number}", agent.id, user_id, "t", "user", f"Turn of day {day}.",
                    now - timedelta(days=day),
                )
                for number, day in enumerate(days)
            ],
        )  # fmt: skip
        indexing.drain(tenant_a.id)
        with tenant_scope(tenant_a.id):
            message_ids = Message.objects.filter(user_id=user_id).values_list("pk", flat=True)
            add_items(agent.id, user_id, "t", [({}, pk) for pk in message_ids])

    return history


def keep(tenant: Tenant, days: int, agent_id: UUID | None = None) -> None:
    with tenant_scope(tenant.id):
        RetentionRule.objects.update_or_create(agent_id=agent_id, defaults={"days": days})


def applied(tenant: Tenant) -> dict[UUID, int]:
    with database.as_owner(), tenant_scope(tenant.id):
        return messages.apply_rules()


def test_old_messages_are_removed_with_their_index_and_window(
    tenant_a: Tenant, agent: Agent, history: Callable[..., None],
    send_message: SendMessage,
) -> None:  # fmt: skip
    history("maria", 50, 40, 3)
    history("bob", 60)
    send_message("Today.", "maria")
    assert len(get_recent_messages(tenant_a.id, agent.id, "maria")) == 5
    keep(tenant_a, 30)
    assert applied(tenant_a) == {agent.id: 3}
    window = get_recent_messages(tenant_a.id, agent.id, "maria")
    assert [turn["content"] for turn in window][:2] == ["Turn of day 3.", "Today."]
    assert get_recent_messages(tenant_a.id, agent.id, "bob") == []
    assert verify(tenant_a.id, "a").findings == []
    with tenant_scope(tenant_a.id):
        assert list(Scope.objects.values_list("user_id", flat=True)) == ["maria"]
        assert ConversationItem.objects.get().message.content == "Turn of day 3."
        event = AccessEvent.objects.get()
    assert (event.actor, event.agent_id, event.detail["messages"]) == ("retention", agent.id, 3)


def test_an_agent_may_have_its_own_rule(
    tenant_a: Tenant, agent: Agent, history: Callable[..., None]
) -> None:
    history("maria", 50, 5)
    keep(tenant_a, 1)
    keep(tenant_a, 100, agent.id)
    assert applied(tenant_a) == {}
    keep(tenant_a, 10, agent.id)
    assert applied(tenant_a) == {agent.id: 1}
    assert applied(tenant_a) == {}


def test_shorter_retention_removes_nothing_before_its_start(
    tenant_a: Tenant, agent: Agent, history: Callable[..., None]
) -> None:
    history("maria", 50, 5)
    with tenant_scope(tenant_a.id):
        rule = RetentionRule(agent_id=agent.id)
        set_days(rule, 10)
        found = preview(rule)
        assert (found.messages, found.users) == (1, 1)
    assert applied(tenant_a) == {}
    with tenant_scope(tenant_a.id):
        RetentionRule.objects.update(effective_at=Now())
    assert applied(tenant_a) == {agent.id: 1}
    with tenant_scope(tenant_a.id):
        rule.refresh_from_db()
        assert (rule.days, rule.next_days, rule.effective_at) == (10, None, None)
        event = AccessEvent.objects.filter(subject="retention rule").get()
        assert (event.actor, event.detail["after"]["days"]) == ("retention", 10)


def test_messages_are_kept_without_a_rule(tenant_a: Tenant, history: Callable[..., None]) -> None:
    history("maria", 5000)
    assert applied(tenant_a) == {}


@pytest.mark.slow
def test_batches_continue_and_keep_replies_with_their_messages(
    tenant_a: Tenant, agent: Agent, send_message: SendMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "RETENTION_BATCH", 2)
    for number in range(5):
        send_message(f"Message {number}.", "maria", f"t{number}")
    with tenant_scope(tenant_a.id):
        long_ago = Message.objects.filter(thread_id__in=["t0", "t2", "t3", "t4"])
        with database.as_owner(), tenant_scope(tenant_a.id):
            long_ago.update(created_at=F("created_at") - timedelta(days=9))
            # A reply of today keeps its message.
            Message.objects.filter(thread_id="t4", role="assistant").update(created_at=Now())
            RetentionRule.objects.create(days=5)
    assert applied(tenant_a) == {agent.id: 6}
    with tenant_scope(tenant_a.id):
        left = Message.objects.order_by("number").values_list("thread_id", flat=True)
        assert list(left) == ["t1", "t1", "t4", "t4"]


def test_clear_mark_is_removed_with_its_messages_and_from_the_cache(
    tenant_a: Tenant, agent: Agent, history: Callable[..., None],
    send_message: SendMessage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Also after a kill after the commit: each window is deleted once."""
    for user_id in ("maria", "bob"):
        history(user_id, 50)
        append_message(tenant_a.id, agent.id, user_id, "user", "alone")
        clear_window(tenant_a.id, agent.id, user_id)
        append_message(tenant_a.id, agent.id, user_id, "user", "alone since")
    with tenant_scope(tenant_a.id):
        RetentionRule.objects.create(days=30)
    delete, deleted = messages.short_term.delete_window, set()

    def delete_once(*of: Any) -> None:
        if of not in deleted:
            deleted.add(of)
            delete(*of)

    monkeypatch.setattr(messages.short_term, "delete_window", delete_once)
    assert applied(tenant_a) == {agent.id: 2}
    cache = get_redis_connection("default")
    assert not cache.exists(memory_short_key(tenant_a.id, agent.id, "bob"))
    with tenant_scope(tenant_a.id):
        assert not WindowClear.objects.exists()
    for user_id in ("maria", "bob"):
        assert get_recent_messages(tenant_a.id, agent.id, user_id) == []
        send_message("Today.", user_id)
        window = get_recent_messages(tenant_a.id, agent.id, user_id)
        assert window[0]["content"] == "Today."
    assert verify(tenant_a.id, "a").findings == []


def test_the_log_quotes_no_removed_message(tenant_a: Tenant, history: Callable[..., None]) -> None:
    history("maria", 50)
    with tenant_scope(tenant_a.id):
        actor = Actor(ActorKind.PERSON, "1", "eva")
        record_access(Action.SEARCH, "memories", by=actor, query="Turn of day 50.")
        event = AccessEvent.objects.latest("pk")
    with database.as_owner(), tenant_scope(tenant_a.id):
        RetentionRule.objects.create(days=30)
    assert [*applied(tenant_a).values()] == [1]
    with tenant_scope(tenant_a.id):
        event.refresh_from_db()
    assert "day 50" not in str(event.detail)
