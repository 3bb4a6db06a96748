"""The month of the demo: its content. The questions of the demo do not depend on it."""

from django.contrib.auth.models import User

from konstruct.local import demo_conversations, demo_month
from konstruct.orchestrator import pipeline
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.models import AgentVersion, Escalation, ToolCall
from memory.indexing.embedding_jobs import drain
from memory.models import MemoryEntry, Message, RecallEvent
from memory.models.facts import FactState
from tenants.audit.models import ErasureRequest, RetentionRule
from tenants.context import tenant_scope
from tenants.models import Tenant


def test_demo_month_has_each_state_and_no_rows_of_the_demo_user(tenant_a: Tenant) -> None:
    agent = create_agent(tenant_id=tenant_a.id, name="Iris")
    with tenant_scope(tenant_a.id):
        admin = User.objects.create_superuser("admin")
        month = demo_month.add_month(agent, admin=admin)
        for message in month.waiting:
            pipeline.handle(tenant_id=tenant_a.id, message_id=message.id)
        drain(tenant_a.id)
        messages = Message.objects.all()
        days = {day.date() for day in messages.values_list("created_at", flat=True)}
        assert len(days) > 25
        assert len(set(messages.values_list("channel", flat=True))) == 3
        assert not messages.filter(user_id=demo_conversations.USER).exists()
        assert {fact.state for fact in MemoryEntry.objects.entries()} == {
            FactState.ACTIVE, FactState.SUPERSEDED, FactState.PROPOSED, FactState.REJECTED,
        }  # fmt: skip
        assert set(Escalation.objects.values_list("resolved_by", flat=True)) == {"", "admin"}
        assert set(RecallEvent.objects.values_list("abstained", flat=True)) == {True, False}
        assert ToolCall.objects.waiting().count() == 1
        assert AgentVersion.objects.filter(agent_id=agent.pk).count() == 2
        assert RetentionRule.objects.filter(effective_at__isnull=False).count() == 1
        assert ErasureRequest.objects.get().user_id == demo_month.LEAVING
