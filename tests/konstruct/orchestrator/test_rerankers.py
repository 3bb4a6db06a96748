"""Rerankers of a tenant: the order of memories, and failures that leave it to the recall."""

import html
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from konstruct.admin.sources import sources_of
from konstruct.orchestrator.agents import create_agent, update_agent
from konstruct.orchestrator.dry_runs import LanguageModelTest, dry_run, measure_language_model
from konstruct.orchestrator.exceptions import AgentInvalid, LanguageModelInvalid, WrongState
from konstruct.orchestrator.language_models import (
    LEFT_OUT,
    MAX_FAILURES,
    create_language_model,
    delete_language_model,
    update_language_model,
)
from konstruct.orchestrator.models import Agent, LanguageModel, ModelCall
from memory import indexing
from memory.context import ContextManager
from memory.models import Message, RecallEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Browser, Program, SendMessage
from tests.konstruct.interfaces.mcp.speaking import call, text_of
from tests.konstruct.orchestrator.conftest import reply
from tests.memory.recall_traces import trace_of
from tests.servers.llm import Answer, LLMServer, Request

KEY = "sk-of-the-reranker"
QUESTION = "Where is the beagle?"
IN_PORTO, IN_FARO = "The beagle is in Porto.", "The beagle is in Faro."
SAID = "The beagle is at the vet."


class RerankServer(LLMServer):
    """Scores texts by the word that they have."""

    scores = (("Faro", 0.9), ("vet", 0.5), ("Porto", 0.1))

    def reply_to(self, request: Request) -> Answer:
        answer = super().reply_to(request)
        if answer.body != "score":
            return answer
        results = [
            {"index": index, "relevance_score": score}
            for index, text in enumerate(request.body["documents"])
            for word, score in self.scores
            if word in text
        ]
        usage = {"total_tokens": 1_000_000}
        return Answer({"results": sorted(results, key=str, reverse=True), "usage": usage})


@pytest.fixture
def server(program: Program, settings: Any) -> Iterator[RerankServer]:
    settings.WEBHOOK_HOSTS = ["127.0.0.1"]
    with RerankServer() as server:
        server.default = Answer("score")
        yield server


@pytest.fixture
def reranker(program: Program, server: RerankServer) -> LanguageModel:
    """The reranker of tenant A's agent, with two facts to sort."""
    model = create_language_model(
        name="sorter",
        kind="reranker",
        endpoint=f"{server.url}/v1",
        key=KEY,
        model="rerank-1",
        prompt_price=Decimal(2),
    )
    update_agent(program.agent, reranker="sorter")
    for text in (IN_PORTO, IN_FARO):
        ContextManager().store_memory(program.tenant.id, text, user_id="maria")
    return model


def prompt_of(llm_server: LLMServer) -> list[str]:
    """Return the memories of the last prompt."""
    content = llm_server.requests[-1].body["messages"][1]["content"]
    return [line.partition("Fact: ")[2] for line in content.splitlines() if "Fact: " in line]


def event_of(message: Message) -> dict[str, Any]:
    return trace_of(RecallEvent.objects.get(reply__in_reply_to=message))


def test_a_reranker_sorts_memories_and_drops_those_below_its_minimum(
    program: Program,
    send_message: SendMessage,
    llm_server: LLMServer,
    reranker: LanguageModel,
    server: RerankServer,
) -> None:
    send_message(SAID, thread_id="then")
    indexing.drain(program.tenant.id)
    program.agent.conversation_pause_hours = 0
    program.agent.save()
    server.forget()
    update_language_model(reranker, min_score=0.4)
    message = send_message(QUESTION)
    assert prompt_of(llm_server) == [IN_FARO]
    (request,) = server.requests
    assert request.path == "/v1/rerank"
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    documents = request.body.pop("documents")
    assert request.body == {"query": QUESTION, "top_n": len(documents), "model": "rerank-1"}
    trace = event_of(message)
    facts = {fact["content"]: fact for fact in trace["facts"]}
    reasons = {content: fact["reason"] for content, fact in facts.items()}
    assert reasons == {IN_FARO: "", IN_PORTO: "below the reranker's minimum"}
    said = Message.objects.get(content=SAID)
    milliseconds = trace["reranker"].pop("milliseconds")
    assert 0 < milliseconds < 3000
    ranked = [(facts[IN_FARO]["memory_id"], 0.9), (str(said.pk), 0.5)]
    ranked.append((facts[IN_PORTO]["memory_id"], 0.1))
    assert trace["reranker"] == {
        "model": "sorter",
        "min_score": 0.4,
        "problem": "",
        "ranked": [{"id": pk, "score": score} for pk, score in ranked],
    }
    why = sources_of(Message.objects.get(in_reply_to=message))
    assert why is not None
    assert [hit["reranked"] for hit in why["hits"]] == [(2, 0.5)]
    assert [fact["reranked"] for fact in why["facts_left_out"]] == [(3, 0.1)]
    call = ModelCall.objects.get(purpose="reranking", message=message)
    assert (call.language_model, call.model, call.outcome) == ("sorter", "rerank-1", "done")
    assert (call.prompt_tokens, call.cost) == (1_000_000, Decimal(2))


@pytest.mark.parametrize(
    "answer",
    [
        Answer("busy", 429, {"Retry-After": "3600"}),
        Answer({"error": "no"}, 400),
        Answer("", wait=True),
        Answer("x" * 1000, drip=0.1),
        Answer({"results": []}, cut_after=5),
        Answer("<html>"),
        Answer([0.1, 0.2]),
        Answer({"results": [{"index": 0, "relevance_score": 0.9}]}),
        Answer({"results": [{"index": n, "relevance_score": 1} for n in (0, 2)]}),
        Answer({"results": [{"index": n, "relevance_score": 1} for n in (0, 0, 1)]}),
        Answer({"results": [{"index": n, "relevance_score": "high"} for n in (0, 1)]}),
        Answer('{"results": [{"index": 0, "relevance_score": NaN}]}'),
        Answer({"results": [{"index": n, "relevance_score": 10**400} for n in (0, 1)]}),
        Answer("", 302, {"Location": "http://127.0.0.1:1/"}),
    ],
    ids=[
        *("429", "400", "hangs", "trickles", "dies", "no JSON", "a list", "one is missing"),
        *("out of range", "twice", "a text", "no number", "a huge number", "redirects"),
    ],
)
def test_a_reranker_that_fails_leaves_the_order_of_the_recall(
    answer: Answer,
    send_message: SendMessage,
    llm_server: LLMServer,
    reranker: LanguageModel,
    server: RerankServer,
) -> None:
    update_language_model(reranker, timeout_seconds=1, min_score=0.4)
    server.default = answer
    message = send_message(QUESTION)
    assert reply(message) == "Noted."
    assert sorted(prompt_of(llm_server)) == [IN_FARO, IN_PORTO]
    trace = event_of(message)
    assert trace["reranker"]["problem"].startswith("The reranker")
    assert trace["reranker"]["ranked"] == []
    assert {fact["reason"] for fact in trace["facts"]} == {""}
    assert len(server.requests) == 1
    assert ModelCall.objects.get(purpose="reranking").outcome == "failed"


def test_a_reranker_that_fails_often_is_left_out_for_a_while(
    send_message: SendMessage, reranker: LanguageModel, server: RerankServer
) -> None:
    server.default = Answer("broken", 500)
    messages = [send_message(QUESTION, thread_id=f"t{n}") for n in range(MAX_FAILURES + 1)]
    assert len(server.requests) == MAX_FAILURES
    assert event_of(messages[-1])["reranker"]["problem"] == LEFT_OUT


def test_dry_runs_ask_the_reranker_of_the_draft(
    program: Program, llm_server: LLMServer, reranker: LanguageModel
) -> None:
    run = dry_run(program.agent, QUESTION, user_id="maria")
    assert prompt_of(llm_server) == [IN_FARO, IN_PORTO]
    assert run.trace is not None
    assert [memory["score"] for memory in run.trace["reranker"]["ranked"]] == [0.9, 0.1]
    assert ModelCall.objects.filter(purpose="dry run").count() == 2
    update_language_model(reranker, is_active=False)
    run = dry_run(program.agent, QUESTION, user_id="maria")
    assert run.trace is not None
    assert run.trace["reranker"] is None


def test_a_reranker_is_no_language_model_and_stays_while_agents_name_it(
    program: Program, reranker: LanguageModel
) -> None:
    with pytest.raises(AgentInvalid, match="no language model 'sorter'"):
        update_agent(Agent.objects.get(), language_models=["sorter"])
    with pytest.raises(AgentInvalid, match="no reranker 'other'"):
        update_agent(Agent.objects.get(), reranker="other")
    url = "https://rerank.example.com/v1"
    for fields in ({"position": 1, "endpoint": url}, {"endpoint": ""}):
        with pytest.raises(LanguageModelInvalid, match="has an address and no position"):
            create_language_model(name="other", kind="reranker", **fields)
    with pytest.raises(WrongState, match="'ada'"):
        delete_language_model(reranker)
    with pytest.raises(WrongState, match="'ada'"):
        update_language_model(LanguageModel.objects.get(), kind="language_model")


def test_another_tenant_has_no_reranker_of_this_one(
    program_b: Program, reranker: LanguageModel
) -> None:
    with tenant_scope(program_b.tenant.pk), pytest.raises(AgentInvalid, match="no reranker"):
        create_agent(tenant_id=program_b.tenant.pk, name="bert", reranker="sorter")


def test_the_test_of_a_reranker_asks_for_scores(
    reranker: LanguageModel, server: RerankServer
) -> None:
    server.scores = (("Porto", 0.9), ("tea", 0.1))
    test = measure_language_model(reranker)
    assert (test.problem, test.streams) == ("", False)
    assert test.seconds is not None
    server.default = Answer("no", 400)
    failed = measure_language_model(reranker)
    assert failed == LanguageModelTest(problem=failed.problem)
    assert "HTTP 400" in failed.problem


def test_programs_and_people_see_the_order_of_the_reranker(
    program: Program, reranker: LanguageModel, server: RerankServer, browser: Browser
) -> None:
    update_language_model(reranker, min_score=0.4)

    def compiled() -> Any:
        body = {"agent": "ada", "user_id": "maria", "task": QUESTION}
        response = program.post("/api/v1/context/compile/", body)
        assert response.status_code == 200, response.content
        return response.json()

    def searched() -> tuple[list[str], Any, str]:
        result = call(program, "search", query=QUESTION, user_id="maria", agent="ada")
        document = result["structuredContent"]
        contents = [row["content"] for row in document["results"]]
        return contents, document["reranker_problem"], text_of(result)

    def page() -> str:
        address = "/admin/memories/"
        query = {"agent": str(program.agent.pk), "user": "maria", "q": QUESTION}
        return html.unescape(browser(program.tenant).get(address, query).content.decode())

    context = compiled()
    assert (context["context"].count("beagle"), IN_FARO in context["context"]) == (1, True)
    assert context["reranker"] == {"model": "sorter", "problem": ""}
    assert searched()[:2] == ([IN_FARO], "")
    shown = page()
    assert "Reranked by <bdi>sorter</bdi>" in shown
    assert "Place 1 of the reranker, score 0.90" in shown
    assert "The reranker gave it a low score." in shown

    server.default = Answer({"error": "no"}, 400)
    context, (contents, problem, text) = compiled(), searched()
    assert context["context"].count("beagle") == len(contents) == 2
    assert context["reranker"]["problem"] == problem
    assert problem.startswith("The reranker")
    assert text.endswith(f"The results are in the order of recall. {problem}")
    assert "not reranked" in page()
    with tenant_scope(program.tenant.pk):
        assert ModelCall.objects.filter(purpose="reranking").count() == 6
