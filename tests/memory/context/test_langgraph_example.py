"""docs/examples/langgraph_agent.py works as docs/context.md describes."""

import runpy
import subprocess
import sys
from pathlib import Path

import django
import pytest

from konstruct.orchestrator.agents import create_agent
from memory.context import LongTermMemory, SessionStore
from memory.models import Message, PendingEmbedding
from tenants.context import tenant_scope
from tenants.models import Tenant

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "langgraph_agent.py"


@pytest.mark.django_db(transaction=True)
def test_the_example_remembers_through_restarts_threads_and_facts(
    tenant_a: Tenant,
    tenant_b: Tenant,
    process_environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for tenant in (tenant_a, tenant_b):
        with tenant_scope(tenant.id):
            create_agent(tenant_id=tenant.id, name="Ada", system_prompt="You are Ada.")

    arguments = [
        tenant_a.slug,
        "Ada",
        "maria",
        "monday",
        "My sister Zoe moved to Lisbon last spring.",
    ]
    subprocess.run([sys.executable, EXAMPLE, *arguments], env=process_environment, check=True)
    # Django is set up. A second setup would bind its log to this test's output.
    monkeypatch.setattr(django, "setup", lambda: None)
    main = runpy.run_path(str(EXAMPLE))["main"]

    def say(tenant: Tenant, thread: str, text: str) -> str:
        monkeypatch.setattr(sys, "argv", [str(EXAMPLE), tenant.slug, "Ada", "maria", thread, text])
        main()
        return capsys.readouterr().out

    say(tenant_a, "monday", "Remember: Maria is allergic to peanuts.")

    # In another thread: recalled from Monday's conversation and from the facts.
    assert "Zoe moved to Lisbon" in say(tenant_a, "tuesday", "Where did my sister Zoe move?")
    assert "Fact: Maria is allergic to peanuts." in say(
        tenant_a, "wednesday", "What is Maria allergic to?"
    )
    assert "Lisbon" not in say(tenant_b, "monday", "Where did my sister Zoe move?")

    messages = SessionStore(tenant_a.id).get_session_messages("monday")
    assert [message["role"] for message in messages] == ["user", "assistant"] * 2
    assert messages[2]["content"] == "Remember: Maria is allergic to peanuts."
    facts = LongTermMemory().list_by_tenant(tenant_a.id)
    assert [fact.content for fact in facts] == ["Maria is allergic to peanuts."]
    assert LongTermMemory().list_by_tenant(tenant_b.id) == []
    with tenant_scope(tenant_a.id):
        assert Message.objects.filter(channel="langgraph").count() == 8
        assert not PendingEmbedding.objects.exists()
