"""Languages: the setting of an agent, and languages that the embedding model does not know."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from konstruct.orchestrator.activity import share_of_unknown_languages
from konstruct.orchestrator.agents import update_agent
from konstruct.orchestrator.models import Agent
from memory.indexing import drain
from memory.models import Message, Posting
from memory.recall.service import recall
from memory.text.lexical import lexeme_hash
from tenants.audit.people import set_time_zone
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program
from tests.memory.messages import add_messages

AGENTS = "/api/v1/agents/"
GERMAN = "Wo haben wir die Wohnungen gesehen?"


@pytest.mark.parametrize(
    ("of_agent", "of_user", "stem"),
    [
        ("de", "", "wohnung"),
        ("", "de-AT", "wohnung"),
        ("de", "en", "wohnung"),
        ("en", "de", "wohnungen"),
        ("", "ja", "wohnungen"),
    ],
)
def test_the_language_of_the_agent_or_else_the_user_decides(
    program: Program, send_message: Callable[..., Message], of_agent: str, of_user: str, stem: str
) -> None:
    for address, language in (
        (f"{AGENTS}{program.agent.id}/", of_agent),
        ("/api/v1/users/maria/", of_user),
    ):
        body = json.dumps({"language": language})
        response = program.request("PATCH", address, data=body, content_type="application/json")
        assert response.json()["language"] == language
    # Its frequent words are English.
    send_message("Please have a look at the Wohnungen in this list.")
    drain(program.tenant.id)
    with tenant_scope(program.tenant.id):
        policy = replace(Agent.objects.get().recall_policy, gate=False)
        words = set(Posting.objects.values_list("lexeme_hash", flat=True))
    assert words.intersection(map(lexeme_hash, ("wohnung", "wohnungen"))) == {lexeme_hash(stem)}
    # Stemmed in the same language.
    found = recall(program.tenant.id, program.agent.id, "maria", "the Wohnungen", policy=policy)
    assert found.hits[0].channels["coverage"] == 1


@pytest.mark.parametrize(
    ("of_user", "of_agent"), [("Asia/Tokyo", "America/Lima"), ("", "Asia/Tokyo")]
)
def test_a_message_is_found_by_its_day_in_the_time_zone_of_the_user_or_agent(
    program: Program, of_user: str, of_agent: str
) -> None:
    with tenant_scope(program.tenant.id):
        agent = update_agent(program.agent, time_zone=of_agent)
        set_time_zone(["kenji"], of_user)
    breakfast = datetime(2026, 3, 8, 23, 10, tzinfo=UTC)
    for start in (breakfast, breakfast + timedelta(days=1)):
        add_messages(program.tenant, "I fly tomorrow.", user="kenji", agent=agent.pk, start=start)
    policy = replace(agent.recall_policy, gate=False)
    found = recall(program.tenant.id, agent.pk, "kenji", "What is on 9 March?", policy=policy)
    assert [hit.created_at for hit in found.hits] == [breakfast]


def test_a_language_without_a_stemmer_is_refused(program: Program) -> None:
    response = program.post(AGENTS, {"name": "bo", "language": "xx"})
    assert (response.status_code, response.json()["errors"][0]["field"]) == (400, "language")


def test_a_recall_in_an_unknown_language_says_so(
    program: Program, send_message: Callable[..., Message]
) -> None:
    for text, unknown in ((GERMAN, ["de"]), ("Where are the flats?", [])):
        message = send_message(text)
        address = f"/api/v1/recall-events/?message_id={message.pk}"
        (event,) = program.get(address).json()["results"]
        assert program.get(event["url"]).json()["unknown_languages"] == unknown
    # A language that was set comes before the words; the agent's before the user's.
    settings = {"user": "fr", "agent": "es"}
    program.write("PUT", f"/api/v1/users/{message.user_id}/", {"language": settings["user"]})
    assert program.get(event["url"]).json()["unknown_languages"] == ["fr"]
    with tenant_scope(program.tenant.id):
        update_agent(program.agent, language=settings["agent"])
    assert program.get(event["url"]).json()["unknown_languages"] == ["es"]


@pytest.mark.django_db
def test_today_and_the_pages_name_the_languages(
    program: Program, send_message: Callable[..., Message], browser: Callable[..., Client]
) -> None:
    send_message("Where are the flats?")
    client = browser(program.tenant)
    assert "% of the newest messages" not in client.get("/admin/").text
    message = send_message(GERMAN)
    with tenant_scope(program.tenant.id):
        assert share_of_unknown_languages() == (0.5, {"de"})
        reply = Message.objects.get(in_reply_to=message)
    assert "50 % of the newest messages" in client.get("/admin/").text
    assert "(German)" in client.get("/admin/").text
    page = client.get(f"/admin/conversations/{reply.pk}/", {"why": str(reply.pk)})
    assert "The embedding model does not know German" in page.text
    agent = client.get(f"/admin/orchestrator/agent/{program.agent.id}/change/").text
    assert "Languages of the embedding model" in agent
