"""Search of memories like an agent's, and the details of one."""

import json
import shlex
from collections.abc import Callable
from typing import Any

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
    best = answer.context["sides"][0]["hits"][0]
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
    page = ask(browser, populated_a, q="When does the ferry to Bergen leave?", gate="false")
    (ferry,) = (hit for hit in page.context["sides"][0]["hits"] if "at nine" in hit["content"])
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
        assert (user, page.context["sides"]) == (user, [])
        assert "Choose an agent and a user" in page.text


def test_the_page_opens_before_anything_is_asked(
    program_a: Program, browser: Callable[..., Client]
) -> None:
    page = browser(program_a.tenant).get(MEMORIES)
    assert (page.status_code, page.context["sides"]) == (200, [])
    assert browser(program_a.tenant, "view_message").get(MEMORIES).status_code == 403


def ask(browser: Callable[..., Client], program: Program, *may: str, **given: str) -> Any:
    query = {"agent": str(program.agent.pk), "user": "maria", "q": "When will my sister visit?"}
    return browser(program.tenant, *may).get(MEMORIES, {**query, **given})


def test_two_policies_are_compared_with_their_differences(
    populated_a: Program, browser: Callable[..., Client]
) -> None:
    page = ask(browser, populated_a, top_k="1", gate="false", compare="on",
               **{"b-top_k": "3", "b-gate": "false", "b-mode": "vector"})  # fmt: skip
    first, second = page.context["sides"]
    assert (len(first["hits"]), len(second["hits"])) == (1, 3)
    assert second["policy"].mode == "vector"
    shared = first["hits"][0]["message_id"]
    alone = [hit for hit in second["hits"] if hit["message_id"] != shared]
    assert {hit["difference"] for hit in alone} == {"only here"}
    assert "only here" in page.text


def test_every_parameter_is_applied_and_invalid_values_are_refused(
    populated_a: Program, browser: Callable[..., Client]
) -> None:
    page = ask(browser, populated_a, preset="precise", open_at="0.9", keep_at="0.4", neighbours="2")
    policy = page.context["sides"][0]["policy"]
    assert (policy.open_at, policy.keep_at, policy.neighbours) == (0.9, 0.4, 2)
    page = ask(browser, populated_a, open_at="0.2", keep_at="0.4")
    assert "keep_at=0.4 is more than open_at=0.2" in page.text
    for wrong in ({"top_k": "500"}, {"open_at": "2"}, {"mode": "<b>"}, {"at": "soon"}):
        page = ask(browser, populated_a, **wrong)
        assert (page.status_code, page.context["sides"]) == (200, [])
        assert "<b>" not in page.text


def test_kinds_and_time_are_chosen(populated_a: Program, browser: Callable[..., Client]) -> None:
    both = ask(browser, populated_a, q="tea", gate="false").context["sides"][0]
    assert both["hits"]
    assert [fact["content"] for fact in both["facts"]] == ["Of tenant-a: likes green tea."]
    facts = ask(browser, populated_a, q="tea", kinds="facts").context["sides"][0]
    assert (facts["result"], facts["hits"]) == (None, [])
    early = ask(browser, populated_a, at="2001-01-01T00:00", gate="false").context["sides"][0]
    assert (early["hits"], early["facts"]) == ([], [])
    blind = ask(browser, populated_a, "recall_memories", q="tea").context["sides"][0]
    assert blind["facts"] == []


def test_the_same_is_copied_as_curl_and_as_python_without_a_key(
    populated_a: Program, browser: Callable[..., Client]
) -> None:
    page = ask(browser, populated_a, q="it's $HOME `id`", top_k="2", gate="false", open_at="0.9")
    commands = dict(page.context["commands"])
    arguments = shlex.split(commands["curl"].replace("\\\n", ""))
    body = json.loads(arguments[arguments.index("-d") + 1])
    assert (body["query"], body["top_k"], body["gate"]) == ("it's $HOME `id`", 2, False)
    assert "Authorization: Bearer $KONSTRUCT_API_KEY" in arguments
    assert "ks_" not in page.text
    assert "the agent has them" in page.text
    assert 'data-copy="as-curl"' in page.text
    answer = populated_a.post("/api/v1/memories/search/", body)
    assert answer.status_code == 200
    compile(commands["Python"], "copied", "exec")


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
