"""Extraction in a tenant's admin: progress of conversations, failed jobs, and tokens."""

import re
from collections.abc import Callable
from uuid import UUID

import pytest
from django.test import Client

from konstruct.llm.completions import LLMRefused
from konstruct.orchestrator.extraction import runs
from konstruct.orchestrator.models import CallOutcome, ExtractionCursor, PendingReply
from memory.models import Message
from tenants.context import tenant_scope
from tests.konstruct.conftest import Browser, Program, SendMessage
from tests.konstruct.metered import metered_call

CURSORS = "/admin/orchestrator/extractioncursor/"
CALLS = "/admin/orchestrator/modelcall/"


@pytest.fixture
def cursors(program_a: Program, send_message: SendMessage) -> dict[str, UUID]:
    """Conversations with a done, a queued and a given-up extraction, by thread."""
    with tenant_scope(program_a.tenant.id):
        program_a.agent.extracts_facts = True
        program_a.agent.save()
    keys = {}
    for thread in ("processed", "queued", "failed"):
        message = send_message(program_a, f"A message of {thread}.", thread_id=thread)
        with tenant_scope(program_a.tenant.id):
            cursor, _ = ExtractionCursor.objects.get_or_create(
                agent_id=message.agent_id, user_id=message.user_id, thread_id=thread
            )
            keys[thread] = cursor.pk
            if thread == "processed":
                last = Message.objects.filter(thread_id=thread).latest("number")
                ExtractionCursor.objects.filter(pk=cursor.pk).update(last_number=last.number)
                runs.EXTRACTIONS.finish(cursor.pk)
            else:
                runs.EXTRACTIONS.enqueue(cursor.pk)
            if thread == "failed":
                runs.EXTRACTIONS.record_failure(cursor.pk, LLMRefused("No such model: gpt-0."))
    return keys


def test_conversations_are_seen_with_how_far_they_are_processed(
    program_a: Program, cursors: dict[str, UUID], browser: Browser
) -> None:
    admin = browser(program_a.tenant)
    page = admin.get(CURSORS)
    rows = {row.thread_id: row for row in page.context["cl"].result_list}
    assert {thread: row.failed_at is not None for thread, row in rows.items()} == {
        "processed": False, "queued": False, "failed": True,
    }  # fmt: skip
    text = page.content.decode()
    assert "No such model: gpt-0." in text
    with tenant_scope(program_a.tenant.id):
        last = Message.objects.filter(thread_id="processed").latest("number")
    assert re.search(rf">\s*{last.number}\s*<", text)
    for state in cursors:
        found = admin.get(f"{CURSORS}?state={state}").context["cl"].result_list
        assert [row.thread_id for row in found] == [state]
    content = admin.get(f"{CURSORS}{cursors['failed']}/change/").content.decode()
    assert "No such model: gpt-0." in content


def test_calls_are_listed_and_found_by_outcome_and_agent(
    program_a: Program, browser: Browser
) -> None:
    with tenant_scope(program_a.tenant.id):
        for outcome, agent_id in (
            (CallOutcome.DONE, program_a.agent.pk),
            (CallOutcome.FAILED, program_a.agent.pk),
            (CallOutcome.UNKNOWN, None),
        ):
            metered_call(outcome, agent_id=agent_id)
    admin = browser(program_a.tenant)
    page = admin.get(CALLS)
    assert len(page.context["cl"].result_list) == 3
    unknown = admin.get(f"{CALLS}?outcome__exact=")
    assert [row.outcome for row in unknown.context["cl"].result_list] == [CallOutcome.UNKNOWN]
    of_agent = admin.get(f"{CALLS}?agent={program_a.agent.pk}").context["cl"].result_list
    assert len(of_agent) == 2
    row = page.context["cl"].result_list[0]
    assert admin.get(f"{CALLS}{row.pk}/change/").status_code == 200
    assert browser(program_a.tenant, "view_message").get(CALLS).status_code == 403


REPLIES = "/admin/orchestrator/pendingreply/"


def test_a_waiting_reply_can_only_be_looked_at(
    program_a: Program, admin: Client, send_message: SendMessage, fail: Callable[..., None]
) -> None:
    message_id = send_message(program_a, "Hello", answered=False).id
    fail(program_a, message_id)
    page = f"{REPLIES}{message_id}/change/"
    assert admin.get(page).status_code == 200
    assert admin.post(page, {"attempts": "0"}).status_code == 403
    assert admin.get(f"{REPLIES}add/").status_code == 403
    assert admin.post(f"{REPLIES}{message_id}/delete/").status_code == 403
    with tenant_scope(program_a.tenant.id):
        assert PendingReply.objects.get().attempts == 1
