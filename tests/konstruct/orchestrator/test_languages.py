"""Languages: the setting of an agent, and languages that the embedding model does not know."""

from collections.abc import Callable

import pytest
from django.test import Client

from konstruct.orchestrator.activity import share_of_unknown_languages
from konstruct.orchestrator.models import Agent
from memory.indexing.embedding_jobs import drain
from memory.models import Message, Posting
from memory.recall.service import recall
from memory.text.lexical import lexeme_hash
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

AGENTS = "/api/v1/agents/"
GERMAN = "Wo haben wir die Wohnungen gesehen?"


def test_an_agent_in_a_language_stems_all_latin_words_in_it(
    program: Program, send_message: Callable[..., Message]
) -> None:
    response = program.request(
        "PATCH", f"{AGENTS}{program.agent.id}/", data=b'{"language": "de"}',
        content_type="application/json",
    )  # fmt: skip
    assert response.json()["language"] == "de"
    # Its frequent words are English.
    send_message("Please have a look at the Wohnungen in this list.")
    drain(program.tenant.id)
    with tenant_scope(program.tenant.id):
        policy = Agent.objects.get().recall_policy
        words = set(Posting.objects.values_list("lexeme_hash", flat=True))
    assert lexeme_hash("wohnung") in words
    assert lexeme_hash("wohnungen") not in words
    found = recall(
        program.tenant.id, program.agent.id, "maria", "Is there a Wohnung?", policy=policy
    )
    assert [hit.content for hit in found.hits][:1] == [
        "Please have a look at the Wohnungen in this list."
    ]


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
