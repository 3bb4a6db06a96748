"""Language models that fail, asked through every interface that asks one. MCP asks none."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from konstruct.channels.delivery import APOLOGY
from konstruct.channels.rest import responses
from konstruct.interfaces.mem0.memories import NO_ANSWER
from konstruct.interfaces.openai import views as openai_views
from konstruct.llm import client as llm_client
from konstruct.orchestrator.extraction import fact_requests
from konstruct.orchestrator.language_models import create_language_model
from konstruct.orchestrator.models import ModelCall
from konstruct.orchestrator.replies import REPLIES
from tenants.context import tenant_scope
from tests.konstruct.channels.conftest import answer_all
from tests.konstruct.conftest import MESSAGES, Post, Program
from tests.konstruct.interfaces.openai.conftest import answer_before_responding
from tests.servers.llm import Answer, LLMServer
from tests.servers.slack import SlackServer, mention

pytestmark = pytest.mark.slow

# A reply, and an answer without facts.
ANSWER = '{"facts": []}'
KEPT = "The text is kept unchanged."
DEAD = "http://127.0.0.1:9/v1"
LATE, LOST = "did not answer within 1 seconds", "cannot be reached"
# Answers of a model's server, or None if there is no server; the code and words of the failure.
FAILURES = {
    "trickles": (Answer("x" * 1000, drip=0.05), "llm_timeout", LATE),
    "hangs": (Answer("", wait=True), "llm_timeout", LATE),
    "truncates": (Answer({"content": "x" * 1000}, cut_after=20), "llm_unavailable", LOST),
    "refuses the schema": (Answer({"error": "unknown"}, 400), "llm_refused", "(HTTP 400)"),
    "429": (Answer("busy", 429, {"Retry-After": "3600"}), "llm_unavailable", "(HTTP 429)"),
    "is dead": (None, "llm_unavailable", LOST),
}


@dataclass
class Interfaces:
    """The interfaces of a program; each method returns the answer, or what it says instead."""

    program: Program
    workspace: SlackServer
    post: Post

    def rest_wait(self) -> str:
        return self._text(self.program.send(query="?wait=5").json())

    def rest_stream(self) -> str:
        response = self.program.send(headers={"Accept": "text/event-stream"})
        name, _, data = response.content.decode().split("\n\n")[-2].partition("\ndata: ")
        assert name == "event: message"
        return self._text(json.loads(data))

    def openai(self) -> str:
        document = self._complete().json()
        if "error" in document:
            return str(document["error"]["code"])
        return str(document["choices"][0]["message"]["content"])

    def openai_stream(self) -> str:
        lines = self._complete(stream=True).content.decode().split("\n\n")
        events = [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]
        assert lines[-2:] == ["data: [DONE]", ""]
        if "error" in events[-1]:
            return str(events[-1]["error"]["code"])
        return "".join(event["choices"][0]["delta"].get("content", "") for event in events)

    def mem0(self) -> str:
        document = self.program.post(
            "/mem0/v3/memories/add/", {"messages": "I live in Rome.", "user_id": "maria"}
        ).json()
        if document["results"]:
            assert document["ignored"]["infer"] == NO_ANSWER
            return KEPT
        return ANSWER

    def extraction(self) -> str:
        self.program.post(
            f"{MESSAGES}import/",
            {"messages": [
                {"external_id": "1", "agent": "ada", "user_id": "maria", "thread_id": "t",
                 "role": "user", "content": "I live in Rome."}
            ]},
        )  # fmt: skip
        body = {"agent": "ada", "user_id": "maria", "thread_id": "t"}
        run = self.program.post("/api/v1/extraction-runs/", body).json()
        return ANSWER if run.get("state") == "preview" else str(run["detail"])

    def dry_run(self) -> str:
        path = f"/api/v1/agents/{self.program.agent.pk}/dry-runs/"
        live = self.program.post(path, {"content": "Hello"}).json()["live"]
        return str(live["problem"] or live["reply"])

    def slack(self) -> str:
        assert self.post(mention("T1", "Hello")).status_code == 200
        answer_all(self.program)
        return self.workspace.posts("T1")[-1]

    def _complete(self, **parameters: Any) -> Any:
        messages = [{"role": "user", "content": "Hello"}]
        body = {"model": "ada", "user": "maria", "messages": messages, **parameters}
        return self.program.post("/v1/chat/completions", body)

    @staticmethod
    def _text(document: Any) -> str:
        if document["status"] == "failed":
            return str(document["error"]["code"])
        return str(document["reply"]["content"])


@pytest.fixture
def interfaces(
    connected: Program,
    slack: SlackServer,
    post: Post,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Interfaces:
    """Interfaces. A worker answers their messages immediately, in one attempt."""
    settings.WEBHOOK_HOSTS, settings.LLM_POOL_URL = ["127.0.0.1"], ""
    monkeypatch.setitem(vars(REPLIES), "max_attempts", 1)
    monkeypatch.setattr(llm_client, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(openai_views, "WAIT_SECONDS", 0)
    fact_requests.supported_formats.clear()
    for module in (responses, openai_views):
        answer_before_responding(monkeypatch, module)
    return Interfaces(connected, slack, post)


@pytest.fixture
def servers() -> Iterator[tuple[LLMServer, LLMServer]]:
    """A server that fails, and one that answers."""
    with LLMServer() as failing, LLMServer() as good:
        good.default = Answer({"choices": [{"message": {"content": ANSWER}}]})
        yield failing, good


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize(
    "interface",
    [
        *("rest_wait", "rest_stream", "openai", "openai_stream", "mem0", "extraction"),
        *("dry_run", "slack"),
    ],
)
def test_a_model_that_fails_is_reported_and_the_next_one_answers(
    interface: str, failure: str, interfaces: Interfaces, servers: tuple[LLMServer, LLMServer]
) -> None:
    ask: Callable[[], str] = getattr(interfaces, interface)
    answer, code, words = FAILURES[failure]
    failing, good = servers
    failing.default = answer or failing.default
    with tenant_scope(interfaces.program.tenant.id):
        create_language_model(
            name="failing",
            endpoint=f"{failing.url}/v1" if answer else DEAD,
            timeout_seconds=1,
            position=1,
        )
    said = {"mem0": KEPT, "slack": APOLOGY.text, "dry_run": words, "extraction": words}
    assert said.get(interface, code) in ask()
    with tenant_scope(interfaces.program.tenant.id):
        create_language_model(name="good", endpoint=f"{good.url}/v1", position=2)
    assert ask() == ANSWER
    with tenant_scope(interfaces.program.tenant.id):
        calls = ModelCall.objects.order_by("created_at").values_list("language_model", "outcome")
        *failed, last = calls
        assert {*failed} == {("failing", "failed")}
        assert last == ("good", "done")
