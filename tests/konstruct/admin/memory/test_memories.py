"""Search of memories like an agent's, and the details of one."""

from collections.abc import Callable

import pytest
from django.test import Client

from konstruct.admin.memory.marking import highlight
from memory.models import Message
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

MEMORIES = "/admin/memories/"


@pytest.fixture
def program_a(db: None, module_populated: Program) -> Program:
    return module_populated


@pytest.fixture
def populated_a(program_a: Program) -> Program:
    return program_a


def test_memory_is_found_by_similar_meaning_with_its_signals(
    populated_a: Program, browser: Callable[..., Client]
) -> None:
    query = {"agent": str(populated_a.agent.pk), "user": "maria", "q": "When will she visit?"}
    answer = browser(populated_a.tenant).get(MEMORIES, query)
    best = answer.context["found"]["hits"][0]
    assert best["content"] == "My sister lives in Lisbon and visits in May."
    assert {"cosine", "lexical"} <= {feature["name"] for feature in best["features"]}
    assert "<mark>visits</mark>" in answer.text
    assert f"{MEMORIES}{best['message_id']}/" in answer.text
    with tenant_scope(populated_a.tenant.id):
        event = AccessEvent.objects.get(action="search", subject="memories")
    assert (event.user_id, event.detail) == ("maria", {"query": "When will she visit?"})


def test_a_memory_without_an_author_has_the_name_of_its_agent(
    populated_a: Program,
    browser: Callable[..., Client],
    import_reply: Callable[[Program, str], None],
) -> None:
    import_reply(populated_a, "The ferry to Bergen leaves at nine.")
    query = {"agent": str(populated_a.agent.pk), "user": "maria", "q": "ferry to Bergen"}
    page = browser(populated_a.tenant).get(MEMORIES, query)
    (ferry,) = (hit for hit in page.context["found"]["hits"] if "at nine" in hit["content"])
    assert f"<span><bdi>{populated_a.agent.name}</bdi></span>" in page.text
    assert "<bdi>assistant</bdi>" not in page.text
    nearest = browser(populated_a.tenant).get(f"{MEMORIES}{ferry['message_id']}/").text
    assert f"<bdi>{populated_a.agent.name}</bdi>, " in nearest
    assert "assistant" not in nearest


def test_only_memories_of_the_agent_and_user_are_found(
    populated_a: Program, populated_b: Program, browser: Callable[..., Client]
) -> None:
    client = browser(populated_a.tenant)
    for user in ("bob", "nobody", "maria"):
        query = {"agent": str(populated_b.agent.pk), "user": user, "q": "Lisbon"}
        page = client.get(MEMORIES, query)
        assert (user, page.context["found"]) == (user, {})
        assert "Choose an agent and a user" in page.text


def test_the_page_opens_before_anything_is_asked(
    program_a: Program, browser: Callable[..., Client]
) -> None:
    page = browser(program_a.tenant).get(MEMORIES)
    assert (page.status_code, page.context["found"]) == (200, {})
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


def test_common_words_are_marked_in_every_form_and_other_text_is_escaped() -> None:
    marked = highlight("She <i>visited</i> twice & visits again.", "How many visits?")
    assert marked == (
        "She &lt;i&gt;<mark>visited</mark>&lt;/i&gt; twice &amp; <mark>visits</mark> again."
    )


def test_matching_part_of_a_long_text_is_shown() -> None:
    marked = highlight("x " * 5000 + "the harbour " + "y " * 5000, "harbour?")
    assert "<mark>harbour</mark>" in marked
    assert len(marked) < 500
    assert (marked[0], marked[-1]) == ("…", "…")
