"""Searching memories as an agent would, and what lies beside one."""

from collections.abc import Callable

import pytest
from django.test import Client

from konstruct.admin.memory.marking import highlighted
from memory.models import Message
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

MEMORIES = "/admin/memories/"


@pytest.fixture
def program_a(db: None, standing_populated: Program) -> Program:
    return standing_populated


@pytest.fixture
def populated_a(program_a: Program) -> Program:
    return program_a


def test_a_memory_is_found_by_meaning_with_what_speaks_for_it(
    populated_a: Program, browser: Callable[..., Client]
) -> None:
    query = {"agent": str(populated_a.agent.pk), "user": "maria", "q": "When will she visit?"}
    answer = browser(populated_a.tenant).get(MEMORIES, query)
    best = answer.context["hits"][0]
    assert best["content"] == "My sister lives in Lisbon and visits in May."
    assert {"cosine", "lexical"} <= {feature["name"] for feature in best["features"]}
    assert "<mark>visits</mark>" in answer.text
    assert f"{MEMORIES}{best['message_id']}/" in answer.text
    with tenant_scope(populated_a.tenant.id):
        event = AccessEvent.objects.get(action="search", subject="memories")
    assert (event.user_id, event.detail) == ("maria", {"query": "When will she visit?"})


def test_only_what_the_agent_knows_of_this_user_is_found(
    populated_a: Program, populated_b: Program, browser: Callable[..., Client]
) -> None:
    client = browser(populated_a.tenant)
    for user in ("bob", "nobody", "maria"):
        query = {"agent": str(populated_b.agent.pk), "user": user, "q": "Lisbon"}
        page = client.get(MEMORIES, query)
        assert (user, page.context["hits"]) == (user, [])
        assert "Choose an agent and a user" in page.text


def test_the_page_opens_before_anything_is_asked(
    program_a: Program, browser: Callable[..., Client]
) -> None:
    page = browser(program_a.tenant).get(MEMORIES)
    assert (page.status_code, page.context["result"]) == (200, None)
    assert browser(program_a.tenant, "view_message").get(MEMORIES).status_code == 403


def test_the_nearest_memories_of_one_are_shown(
    populated_a: Program, browser: Callable[..., Client]
) -> None:
    with tenant_scope(populated_a.tenant.id):
        message = Message.objects.get(content="Where does my sister live?")
    page = browser(populated_a.tenant).get(f"{MEMORIES}{message.pk}/")
    nearest = page.context["neighbours"]
    assert "My sister lives in Lisbon" in nearest[0].content
    assert nearest == sorted(nearest, key=lambda near: -near.similarity)
    assert message.pk not in {near.message_id for near in nearest}


def test_words_in_common_are_marked_whatever_their_form_and_nothing_else_is_html() -> None:
    marked = highlighted("She <i>visited</i> twice & visits again.", "How many visits?")
    assert marked == (
        "She &lt;i&gt;<mark>visited</mark>&lt;/i&gt; twice &amp; <mark>visits</mark> again."
    )


def test_of_a_long_text_the_part_that_matters_is_shown() -> None:
    marked = highlighted("x " * 5000 + "the harbour " + "y " * 5000, "harbour?")
    assert "<mark>harbour</mark>" in marked
    assert len(marked) < 500
    assert (marked[0], marked[-1]) == ("…", "…")
