"""Query budgets of each page of a tenant's admin, independent of the number of rows."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from konstruct.api.models import ApiKey
from konstruct.orchestrator.agents import update_agent
from konstruct.orchestrator.models import Agent, Escalation, ExtractionRun
from memory.conversations.short_term import clear_window
from memory.facts import LongTermMemory
from memory.long_term import store_embedding
from memory.models import MemoryEntry, Message
from tenants.admin.sites import tenant_site
from tenants.audit.models import ErasureRequest
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program, SendMessage
from tests.messages import statements

# Queries of a GET: session, user and permissions, the tenant's host, the access log, and its own.
# Pages that only take POST, or only redirect, are not here.
PAGES = {
    "conversations": ("conversations/", 13),
    "conversation": ("conversations/{message}/", 27),
    "memories": ("memories/?agent={agent}&user=maria&q=sister", 22),
    "windows": ("windows/", 9),
    "window": ("window/?agent={agent}&user=maria", 13),
    "people": ("people/", 9),
    "person": ("people/person/?user=maria", 29),
    "erase_person": ("people/person/erase/?user=maria", 12),
    "erase_message": ("messages/{message}/erase/", 8),
    "activity": ("activity/", 15),
    "records": ("records/", 7),
    "list_export": ("exports/{export}/", 9),
    "exclude_message": ("messages/{message}/exclude/", 9),
    "fact_review": ("facts/review/", 16),
    "roll_back_extraction_run": ("extraction-runs/{run}/roll-back/", 25),
    "escalation": ("escalations/{escalation}/", 13),
    "agent_versions": ("agents/{agent}/versions/", 9),
    "try_agent": ("agents/{agent}/try/", 12),
    "slack_connect": ("slack/connect/", 7),
    "import_history": ("imports/", 7),
    "invite_person": ("team/{person}/invite/", 8),
    "receipt_json": ("erasures/{erasure}/receipt.json", 8),
    "roll_key": ("api-keys/{key}/roll/", 8),
    "sessions": ("sessions/", 8),
    "thread": ("conversations/{shared}/thread/", 14),
    "search_page": ("search/?q=sister", 40),
}
# Uncommitted rows have no session: their budgets are in memory/test_sessions.py.
SESSION_PAGES = {"session"}
WITHOUT_A_GET = {
    "decide_fact",
    "confirm_import",
    "clear_window",
    "clear_session",
    "ask_questions",
    "restore_agent",
    "delete_question",
    "language_model_test",
    "answer_escalation",
    "assign_escalation",
    "resolve_escalation",
    "escalate",
    "hand_over",
    "export_person",
    "include_message",
    "ask_again",
    "slack_finish",
    "list_export_download",
    *(f"{page}_export" for page in ("conversations", "people")),
}
DASHBOARD = 28
LIST = 14
ROW = 17


def cost(client: Client, address: str) -> int:
    with statements() as sent:
        assert client.get(f"/admin/{address}").status_code == 200
    return len(sent)


def more(program: Program, send_message: SendMessage) -> None:
    """Create many more rows of all lists."""
    tenant_id, agent_id = program.tenant.id, program.agent.id
    for number in range(60):
        user = f"u{number}"
        send_message(
            program, f"Number {number}?", answered=False, user_id=user, thread_id=f"t{number}"
        )
        clear_window(tenant_id, agent_id, user)
        store_embedding(tenant_id, agent_id, user, str(number), "user", [1.0] * 384)
        LongTermMemory().store(
            MemoryEntry(
                tenant_id=tenant_id,
                agent_id=agent_id,
                user_id="maria",
                content=f"Fact {number}",
                embedding=[1.0] * 383 + [float(number)],
            )
        )


@pytest.fixture
def parameters(pending_a: Program) -> dict[str, Any]:
    """Return the values of the parameters of addresses."""
    with tenant_scope(pending_a.tenant.id):
        update_agent(Agent.objects.get(pk=pending_a.agent.pk), persona="Curt.")
        reply = Message.objects.filter(in_reply_to__isnull=False).earliest("number")
        run = ExtractionRun.objects.values_list("pk", flat=True)[0]
        escalation = Escalation.objects.get().pk
        key = ApiKey.objects.values_list("pk", flat=True)[0]
        person = User.objects.create_user("invited").pk
        done = ErasureRequest(user_id="x", requested_by="eva", done_at=timezone.now(), receipt={})
        done.save(force_insert=True)
        erasure = done.pk
        shared = Message.objects.create(
            agent_id=pending_a.agent.pk,
            user_id="zoe",
            thread_id="shared",
            channel="slack",
            role="user",
            content="Hello all",
        ).pk
    return {
        "agent": pending_a.agent.pk,
        "message": reply.pk,
        "shared": shared,
        "escalation": escalation,
        "run": run,
        "key": key,
        "erasure": erasure,
        "person": person,
        "export": uuid4(),
    }


def test_every_page_has_a_budget() -> None:
    assert {*PAGES, *WITHOUT_A_GET, *SESSION_PAGES} == set(tenant_site.pages)


@pytest.mark.slow
def test_pages_keep_their_query_budgets_with_any_number_of_rows(
    pending_a: Program, parameters: dict[str, Any], admin: Client, send_message: SendMessage
) -> None:
    budgets = {address.format(**parameters): budget for address, budget in PAGES.values()}
    budgets[""] = DASHBOARD
    lists = [
        f"{model._meta.app_label}/{model._meta.model_name}/" for model in tenant_site._registry
    ]
    budgets |= dict.fromkeys(lists, LIST)
    cost(admin, "")  # with values that a process reads once
    for window in ("window", "thread"):  # copies that are missing, or too old
        cost(admin, PAGES[window][0].format(**parameters))
    few = {address: cost(admin, address) for address in budgets}
    more(pending_a, send_message)
    many = {address: cost(admin, address) for address in budgets}
    over = {address: many[address] for address in budgets if many[address] > budgets[address]}
    assert over == {}
    assert {address: (few[address], many[address]) for address in budgets} == {
        address: (few[address], few[address]) for address in budgets
    }
