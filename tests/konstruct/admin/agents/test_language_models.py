"""Language models in a tenant's admin: the form with a hidden key, the chain of an agent, tests."""

import re
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from konstruct.api.models import KeyScope
from konstruct.orchestrator import pipeline, runner
from konstruct.orchestrator.agents import update_agent
from konstruct.orchestrator.builder import AgentForReply
from konstruct.orchestrator.language_models import create_language_model, key_of
from konstruct.orchestrator.models import Agent, LanguageModel
from memory.context import ContextManager
from tenants.audit.models import AccessEvent, Action
from tenants.context import tenant_scope
from tests.konstruct.conftest import Browser, Program
from tests.servers.llm import Answer, LLMServer, streamed

PAGE = "/admin/orchestrator/languagemodel/"
KEY = "sk-only-the-server-sees-it"


def save(admin: Client, path: str = "add/", **fields: Any) -> Any:
    form = {"name": "main", "prompt_price": "2.5", "completion_price": "10", "is_active": "on"}
    form["kind"] = "language_model"
    return admin.post(f"{PAGE}{path}", {**form, **fields}, follow=True)


def test_a_model_is_added_and_changed_and_its_key_is_never_shown(
    program_a: Program, admin: Client
) -> None:
    url = "https://llm.example.com/v1"
    save(admin, endpoint=url, key=KEY, position="1")
    with tenant_scope(program_a.tenant.id):
        model = LanguageModel.objects.get()
        assert (model.name, model.endpoint, key_of(model)) == ("main", url, KEY)
    page = save(admin, f"{model.pk}/change/", endpoint=url, model="large")
    assert "errornote" not in page.text
    for shown in (page, admin.get(PAGE), admin.get(f"{PAGE}{model.pk}/change/")):
        assert KEY not in shown.text
        assert model.secret_key not in shown.text
    moved = save(admin, f"{model.pk}/change/", endpoint="https://other.example.com/v1")
    assert "Enter the key again" in moved.text
    with tenant_scope(program_a.tenant.id):
        model.refresh_from_db()
        assert (model.model, model.endpoint, key_of(model)) == ("large", url, KEY)
        assert KEY not in str(list(AccessEvent.objects.values_list("detail", flat=True)))


@pytest.mark.parametrize("url", ["https://127.0.0.1/v1", "http://llm.example.com/v1", "llm"])
def test_a_refused_address_is_an_error_of_the_form(
    program_a: Program, admin: Client, url: str
) -> None:
    page = save(admin, endpoint=url)
    assert page.context["adminform"].form.errors.keys() == {"endpoint"}
    assert "Enter the key again" in save(admin, endpoint=url, key=KEY).text
    with tenant_scope(program_a.tenant.id):
        assert not LanguageModel.objects.exists()


def test_an_agent_names_its_models_in_their_order(program_a: Program, admin: Client) -> None:
    with tenant_scope(program_a.tenant.id):
        for name in ("one", "two"):
            create_language_model(name=name, endpoint="https://llm.example.com/v1")
    page = f"/admin/orchestrator/agent/{program_a.agent.pk}/change/"
    fields = re.findall(r'name="(\w+)"[^>]*?value="([^"]*)"', admin.get(page).text)
    form = {**dict(fields), "language_models": "two\r\none", "name": "ada", "model_tier": "fast"}
    form |= {"recall_mode": "hybrid", "recall_preset": "balanced", "fact_review": "doubtful"}
    form |= {"recall_weights": "{}", "fact_review_by_slot": "{}", "system_prompt": "You are Ada."}
    saved = admin.post(page, form, follow=True)
    assert "errornote" not in saved.text
    with tenant_scope(program_a.tenant.id):
        assert Agent.objects.get().language_models == ["two", "one"]
        model = LanguageModel.objects.get(name="one")
    refused = admin.post(f"{PAGE}{model.pk}/delete/", {"post": "yes"}, follow=True)
    assert "from these agents first" in refused.text
    with tenant_scope(program_a.tenant.id):
        assert LanguageModel.objects.count() == 2


def test_the_button_tests_a_model(
    program_a: Program, admin: Client, browser: Browser, settings: Any, llm_connections: None
) -> None:
    settings.WEBHOOK_HOSTS = ["127.0.0.1"]
    with LLMServer() as server:
        with tenant_scope(program_a.tenant.id):
            model = create_language_model(name="main", endpoint=f"{server.url}/v1")
        path = f"/admin/language-models/{model.pk}/test/"
        assert path in admin.get(f"{PAGE}{model.pk}/change/").text
        server.answers = [streamed("O", "K")]
        page = admin.post(path, follow=True).text
        assert "Streaming: yes. Tools: no. JSON schema: no." in page
        server.default = Answer("no", 401)
        refused = admin.post(path, headers={"Accept-Language": "de"}, follow=True).text
        assert "abgelehnt (HTTP 401). Prüfen Sie seinen Schlüssel." in refused
        reader = browser(program_a.tenant, "view_languagemodel")
        assert (admin.get(path).status_code, reader.post(path).status_code) == (403, 403)
        assert admin.post(f"/admin/language-models/{uuid4()}/test/").status_code == 404
    with tenant_scope(program_a.tenant.id):
        tried = AccessEvent.objects.filter(action=Action.TRY, subject="language model")
        assert tried.count() == 2


def test_a_conversation_names_the_model_and_its_cost(
    program_a: Program, admin: Client, settings: Any, llm_connections: None
) -> None:
    settings.WEBHOOK_HOSTS = ["127.0.0.1"]
    message_id = program_a.send("Hello").json()["id"]
    usage = {"prompt_tokens": 1_000, "completion_tokens": 1_000}
    with LLMServer() as server, tenant_scope(program_a.tenant.id):
        server.default = Answer({"choices": [{"message": {"content": "Hi."}}], "usage": usage})
        create_language_model(
            name="main", endpoint=f"{server.url}/v1", model="large", prompt_price=2, position=1
        )
        meter = {"message_id": message_id, "agent_id": program_a.agent.pk}
        prompt = [{"role": "user", "content": "Hello"}]
        runner.complete(None, AgentForReply(program_a.agent, meter=meter), prompt)
    page = admin.get(f"/admin/conversations/{message_id}/").text
    assert "main: large, cost 0.002" in page
    assert "main" in admin.get("/admin/orchestrator/modelcall/").text
    (row,) = program_a.get("/api/v1/usage/models/").json()["results"]
    assert (row["language_model"], row["model"], row["cost"]) == ("main", "large", "0.002000")


def test_a_reranker_is_added_and_sources_show_its_place_for_each_memory(
    program_a: Program, admin: Client, settings: Any, llm_connections: None
) -> None:
    settings.WEBHOOK_HOSTS = ["127.0.0.1"]
    tenant_id = program_a.tenant.id
    with LLMServer() as server:
        fields = {"kind": "reranker", "endpoint": server.url, "min_score": "0.4"}
        refused = save(admin, **fields, position="1")
        assert "A reranker has an address and no position." in refused.text
        save(admin, **fields)
        server.answers = [
            Answer({"results": [{"index": 0, "relevance_score": 0.25}]}),
            Answer("<html>"),
        ]
        pages = []
        for thread_id in ("t1", "t2"):
            with tenant_scope(tenant_id):
                update_agent(Agent.objects.get(), reranker="main")
                ContextManager().store_memory(tenant_id, "The beagle is in Porto.")
            message_id = program_a.send("Where is the beagle?", thread_id=thread_id).json()["id"]
            pipeline.handle(tenant_id=tenant_id, message_id=message_id)
            reply_id = program_a.get(f"/api/v1/messages/{message_id}/").json()["reply"]["id"]
            pages.append(admin.get(f"/admin/conversations/{message_id}/?why={reply_id}").text)
    assert "Reranked by <bdi>main</bdi>" in pages[0]
    assert "Place 1 of the reranker, score 0.25" in pages[0]
    assert "below the reranker&#x27;s minimum" in pages[0]
    assert "The reranker&#x27;s answer cannot be read: it is not JSON." in pages[1]


def test_a_key_that_may_not_read_lets_no_server_read_prompts(program_a: Program) -> None:
    models = "/api/v1/language-models/"
    writer = program_a.with_key(scopes=[KeyScope.WRITE])
    body = {"name": "mine", "endpoint": "https://llm.example.com/v1", "position": 0}
    assert writer.post(models, body).status_code == 403
    model = program_a.post(models, body).json()
    changed = writer.write("PATCH", f"{models}{model['id']}/", {"endpoint": "https://example.org"})
    assert changed.status_code == 403
