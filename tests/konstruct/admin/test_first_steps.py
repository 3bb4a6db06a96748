"""The checklist of a new tenant, from the first agent to the first message."""

import shlex

from django.test import Client

from konstruct.api.auth.keys import issue_key, record_use
from konstruct.orchestrator.models import Agent
from memory.models import Message
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.konstruct.conftest import Browser, Program

HOME = "/admin/"


def steps_done(client: Client) -> list[bool]:
    steps = client.get(HOME).context.get("first_steps", {})
    return [done for name, done in steps.items() if name != "command"]


def test_first_steps_are_completed_in_turn_and_the_list_disappears(
    tenant_a: Tenant, program_b: Program, browser: Browser
) -> None:
    client = browser(tenant_a)
    assert steps_done(client) == [False, False, False]
    with tenant_scope(tenant_a.id):
        agent = Agent.objects.create(name="Ada")
    assert steps_done(client) == [True, False, False]
    key, _ = issue_key(tenant_id=tenant_a.id, name="new")
    assert steps_done(client) == [True, True, False]
    with tenant_scope(tenant_a.id):
        record_use(key)
    issue_key(tenant_id=tenant_a.id, name="unused")
    assert steps_done(client) == [True, True, True]
    with tenant_scope(tenant_a.id):
        Message.objects.create(
            agent_id=agent.pk, user_id="maria", thread_id="t", channel="rest", role="user",
            content="Hi",
        )  # fmt: skip
    assert steps_done(client) == []
    assert "First steps" not in client.get(HOME).text


def test_the_command_is_for_this_host_and_quotes_the_agent(
    tenant_a: Tenant, browser: Browser
) -> None:
    with tenant_scope(tenant_a.id):
        Agent.objects.create(name="</pre><script>alert(1)</script>'; rm -rf / '")
    page = browser(tenant_a).get(HOME)
    command = page.context["first_steps"]["command"]
    words = shlex.split(command.replace("\\\n", " "))
    assert "http://tenant-a.localhost/api/v1/messages/?wait=30" in words
    assert any(word.startswith('{"agent": "</pre>') and "rm -rf" in word for word in words)
    assert "<script>alert(1)" not in page.text


def test_links_of_first_steps_require_permission(tenant_a: Tenant, browser: Browser) -> None:
    page = browser(tenant_a, "view_message", "view_agent").get(HOME)
    assert "First steps" in page.text
    assert "/admin/orchestrator/agent/add/" not in page.text
    for permission in ("view_agent", "view_message"):
        assert "first_steps" not in browser(tenant_a, permission).get(HOME).context
