"""Tools of the client: the language model requests calls, the client runs them, one reply stays."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from konstruct.api.auth.keys import issue_key
from konstruct.consistency import HELD_WITHOUT_QUESTION, LOST, find
from konstruct.interfaces.openai import views
from konstruct.orchestrator import pipeline, tool_calls
from konstruct.orchestrator.agents import update_agent
from konstruct.orchestrator.language_models import create_language_model
from konstruct.orchestrator.models import AnswerOptions, PendingReply, ToolCall
from konstruct.orchestrator.pipeline import respond
from memory.models import Message
from tenants.context import tenant_scope
from tenants.models import Job
from tests.konstruct.conftest import Program
from tests.konstruct.interfaces.openai.conftest import CHAT, answer_before_responding
from tests.konstruct.interfaces.openai.test_chat_completions import error_of, events_of
from tests.servers.llm import Answer, LLMServer

WEATHER = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}},
}
QUESTION = {"role": "user", "content": "How is the weather in Porto?"}


def calling(*names: str, **arguments: Any) -> Answer:
    """Return a language model's answer with tool calls, always with the same ids."""
    calls = [
        {"id": f"c{n}", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for n, name in enumerate(names)
    ]
    return Answer({"choices": [{"message": {"content": None, "tool_calls": calls}}]})


def saying(text: str) -> Answer:
    return Answer({"choices": [{"message": {"content": text}}]})


@dataclass
class Client:
    """A client with tools. A worker answers its requests immediately."""

    program: Program
    llm: LLMServer

    def post(self, *messages: Any, tools: Any = (WEATHER,), **parameters: Any) -> Any:
        body = {"model": "ada", "user": "maria", "messages": messages, "tools": list(tools)}
        return self.program.post(CHAT, {**body, **parameters})

    def ask(self, *messages: Any, **parameters: Any) -> Any:
        """Return the choice of a completion."""
        response = self.post(*messages, **parameters)
        assert response.status_code == 200, response.content
        return response.json()["choices"][0]

    def transcript(self) -> list[tuple[str, str]]:
        with tenant_scope(self.program.tenant.id):
            turns = Message.objects.order_by("created_at", "number")
            return list(turns.values_list("role", "content"))

    def calls(self) -> list[tuple[str, str, str]]:
        with tenant_scope(self.program.tenant.id):
            rows = ToolCall.objects.order_by("created_at", "round", "position")
            return list(rows.values_list("name", "state", "result"))


@pytest.fixture
def client(
    program_a: Program, llm_server: LLMServer, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Client:
    settings.LLM_POOL_URL = f"{llm_server.url}/v1"
    llm_server.default = saying("It is sunny.")

    monkeypatch.setattr(views, "WAIT_SECONDS", 0)
    answer_before_responding(monkeypatch, views)
    return Client(program_a, llm_server)


def results(choice: Any, *texts: Any) -> list[Any]:
    """Return the client's next messages: the choice with calls, and the results."""
    calls = choice["message"]["tool_calls"]
    tool_results = [
        {"role": "tool", "tool_call_id": call["id"], "content": text}
        for call, text in zip(calls, texts, strict=True)
    ]
    return [choice["message"], *tool_results]


def test_message_continues_with_results_of_client_tools(client: Client) -> None:
    client.llm.answers = [calling("weather", "weather", place="Porto"), calling("weather")]
    choice = client.ask(QUESTION, tool_choice="required", parallel_tool_calls=True)
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", None)
    first_request = client.llm.requests[0].body
    assert (first_request["tools"], first_request["tool_choice"]) == ([WEATHER], "required")
    assert first_request["parallel_tool_calls"] is True
    first, second = choice["message"]["tool_calls"]
    assert first["id"] != second["id"]
    assert (first["type"], first["function"]["name"]) == ("function", "weather")
    assert json.loads(first["function"]["arguments"]) == {"place": "Porto"}
    assert client.calls() == [("weather", "with_program", "")] * 2
    messages = [QUESTION, *results(choice, "22 °C\0", [{"type": "text", "text": "dry"}])]
    again = client.ask(*messages)
    assert "tool_choice" not in client.llm.requests[1].body
    last = client.ask(*messages, *results(again, "no wind"), tools=[])
    assert (last["finish_reason"], last["message"]["content"]) == ("stop", "It is sunny.")
    body = client.llm.requests[-1].body
    assert "tools" not in body
    messages = [message for message in body["messages"] if message["role"] in ("assistant", "tool")]
    assert [message["content"] for message in messages] == ["", "22 °C", "dry", "", "no wind"]
    assert messages[0]["tool_calls"][0]["id"] == "c0"
    assert client.transcript() == [("user", QUESTION["content"]), ("assistant", "It is sunny.")]
    assert {state for _, state, _ in client.calls()} == {"done"}
    with tenant_scope(client.program.tenant.id):
        assert not AnswerOptions.objects.exists()
        assert {call.decided_by for call in ToolCall.objects.all()} == {"tests, by the API"}


def test_a_stream_ends_with_the_calls_and_each_answer_has_an_id(client: Client) -> None:
    client.llm.answers = [calling("weather")]
    events = events_of(client.post(QUESTION, stream=True))
    (call,) = events[-2]["choices"][0]["delta"]["tool_calls"]
    assert (call["index"], call["function"]["name"]) == (0, "weather")
    assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"
    choice = {"message": {"role": "assistant", "tool_calls": [call]}}
    rest = events_of(client.post(QUESTION, *results(choice, "22"), stream=True))
    assert [chunk["choices"][0]["delta"].get("content") for chunk in rest] == [
        "",
        "It is sunny.",
        None,
    ]
    assert rest[0]["id"] == f"{events[0]['id']}-1"


def test_text_before_tool_calls_is_stored_with_them_for_stream_and_request(client: Client) -> None:
    # The first call of the answer fails, because its tool does not exist.
    calls = [
        {"index": n, "id": f"c{n}", "function": {"name": name, "arguments": "{}"}}
        for n, name in enumerate(["unknown", "weather"])
    ]
    first_delta = {"content": "Let me look.\0 ", "tool_calls": calls}
    client.llm.answers = [Answer({"choices": [{"message": first_delta}]})] * 2
    choice = client.ask(QUESTION)
    assert choice["message"]["content"] == "Let me look."
    deltas = [
        event["choices"][0]["delta"] for event in events_of(client.post(QUESTION, stream=True))
    ]
    assert "".join(delta.get("content") or "" for delta in deltas) == "Let me look."
    assert deltas[-2]["tool_calls"][0]["function"]["name"] == "weather"
    client.ask(QUESTION, *results(choice, "22"))
    messages = client.llm.requests[-1].body["messages"]
    assert [message["content"] for message in messages if message["role"] == "assistant"] == [
        "Let me look."
    ]


def test_repeated_results_get_the_same_answer_and_are_stored_once(client: Client) -> None:
    client.llm.answers = [calling("weather"), saying("Sunny."), saying("Never said.")]
    body = {"model": "ada", "user": "maria", "messages": [QUESTION], "tools": [WEATHER]}
    keyed = [client.program.post(CHAT, body, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    choice, repeated = (response.json()["choices"][0] for response in keyed)
    assert repeated["message"]["tool_calls"] == choice["message"]["tool_calls"]
    messages = [QUESTION, *results(choice, "22")]
    assert client.ask(*messages)["message"]["content"] == "Sunny."
    other = [QUESTION, *results(choice, "something else")]
    assert client.ask(*other)["message"]["content"] == "Sunny."
    assert client.calls() == [("weather", "done", "22")]
    assert len(client.transcript()) == len(client.llm.requests) == 2


def test_the_next_message_after_a_history_with_calls_is_new(client: Client) -> None:
    client.llm.answers = [calling("weather")]
    messages = [QUESTION, *results(client.ask(QUESTION), "22")]
    messages += [client.ask(*messages)["message"], {"role": "user", "content": "Thanks."}]
    assert client.ask(*messages)["message"]["content"] == "It is sunny."
    assert [text for role, text in client.transcript() if role == "user"] == [
        QUESTION["content"],
        "Thanks.",
    ]


def test_next_question_closes_the_reply_to_tool_results(client: Client) -> None:
    client.llm.answers = [calling("weather")]
    messages = [
        QUESTION,
        *results(client.ask(QUESTION), "22"),
        {"role": "user", "content": "And now?"},
    ]
    assert client.ask(*messages)["message"]["content"] == "It is sunny."
    assert client.calls() == [("weather", "done", "22")]
    with tenant_scope(client.program.tenant.id):
        (given_up,) = PendingReply.objects.all()
        assert (given_up.error_code, given_up.last_error) == (
            "closed",
            tool_calls.CONTINUED_WITHOUT_ANSWER,
        )


def test_unknown_or_incomplete_tool_results_are_refused(
    client: Client, make_program: Callable[..., Program], tenant_b: Any
) -> None:
    client.llm.answers = [calling("weather", "weather")]
    choice = client.ask(QUESTION)
    one = results({"message": {"tool_calls": choice["message"]["tool_calls"][:1]}}, "22")[1]
    both = [QUESTION, *results(choice, "1", "2")]
    assert error_of(client.post(QUESTION, one), 400)["code"] == "tool_result_missing"
    strange = {"role": "tool", "tool_call_id": "call_0", "content": "22"}
    _, bound = issue_key(tenant_id=client.program.tenant.id, name="paul", user_id="paul")
    other_tenant = make_program(tenant_b)
    refusals = [
        client.post(QUESTION, strange),
        client.post(*both, strange),
        client.post(*both, user="paul"),
        client.post(*both, metadata={"thread_id": "another"}),
        Client(replace(client.program, key=str(bound)), client.llm).post(*both, user="paul"),
        Client(other_tenant, client.llm).post(*both),
    ]
    assert [error_of(refusal, 400)["code"] for refusal in refusals] == ["tool_call_not_found"] * 6
    no_id = {"role": "tool", "content": "22"}
    assert error_of(client.post(QUESTION, no_id), 400)["param"] == "messages[1].tool_call_id"
    assert client.calls() == [("weather", "with_program", "")] * 2


def test_tools_of_the_agent_and_their_consent_come_first(client: Client) -> None:
    with tenant_scope(client.program.tenant.id):
        update_agent(client.program.agent, tools=["remember_fact"])
    own_tool = {"type": "function", "function": {"name": "remember_fact"}}
    client.llm.answers = [calling("weather", "remember_fact", fact="Porto is sunny.")]
    choice = client.ask(QUESTION, tools=[WEATHER, own_tool])
    offered = client.llm.requests[0].body["tools"]
    assert [tool["function"]["name"] for tool in offered] == ["remember_fact", "weather"]
    assert "May I remember this" in choice["message"]["content"]
    yes = client.ask(QUESTION, choice["message"], {"role": "user", "content": "yes"})
    assert yes["message"]["content"] == "Thank you: I will."
    with tenant_scope(client.program.tenant.id):
        message = Message.objects.get(content=QUESTION["content"])
    pipeline.handle(tenant_id=client.program.tenant.id, message_id=message.pk)
    assert sorted(client.calls())[1] == ("weather", "with_program", "")
    with tenant_scope(client.program.tenant.id):
        assert PendingReply.objects.get(pk=message.pk).held_for == "program"
        assert find(LOST, HELD_WITHOUT_QUESTION) == []


def test_a_program_that_never_sends_its_results_is_not_waited_for(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("konstruct.orchestrator.replies.CONSENT_TIME", timedelta(0))
    client.llm.answers = [calling("weather")]
    choice = client.ask(QUESTION)
    with tenant_scope(client.program.tenant.id):
        assert find(LOST, HELD_WITHOUT_QUESTION) == []
        ToolCall.objects.update(state="done")
        assert [finding.kind for finding in find(LOST, HELD_WITHOUT_QUESTION)] == [
            HELD_WITHOUT_QUESTION
        ]
        ToolCall.objects.update(state="with_program")
        (entry,) = Job.objects.filter(kind="reply")
        assert entry.sweep_at is not None
    pipeline.handle(tenant_id=client.program.tenant.id, message_id=entry.key)
    assert [state for _, state, _ in client.calls()] == ["expired"]
    late = error_of(client.post(QUESTION, *results(choice, "22")), 503)
    assert (late["code"], len(client.llm.requests)) == ("closed", 1)


def test_long_results_and_many_rounds_have_an_end(client: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr(respond, "MAX_PROGRAM_ROUNDS", 1)
    client.llm.answers = [calling("weather", "weather")]
    choice = client.ask(QUESTION)
    client.ask(QUESTION, *results(choice, "sun " * 40_000, "dry"))
    body = client.llm.requests[-1].body
    results_sent = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    assert results_sent[1] == "dry"
    assert 30_000 < len(results_sent[0]) < 130_000
    assert "truncated" in results_sent[0]
    assert body["tool_choice"] == "none"


def test_the_form_of_an_answer_is_the_clients(client: Client, settings: Any) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
    client.ask(QUESTION, tools=[], response_format=form)
    assert client.llm.requests[-1].body["response_format"] == form
    settings.LLM_POOL_URL = ""
    named = {"type": "function", "function": {"name": "weather"}}
    for parameters in (
        {"response_format": form},
        {"tool_choice": "required"},
        {"tool_choice": named},
    ):
        error = error_of(client.post(QUESTION, **parameters), 400)
        assert ({error["param"]}, error["code"]) == (parameters.keys(), "unsupported_parameter")
    choice = client.ask(QUESTION, tool_choice="auto")
    assert (choice["finish_reason"], client.calls()) == ("stop", [])


def test_the_next_model_of_the_tenant_answers_a_completion(
    client: Client, settings: Any, program_a: Program
) -> None:
    settings.WEBHOOK_HOSTS, settings.LLM_POOL_URL = ["127.0.0.1"], ""
    with LLMServer() as failing:
        failing.default = Answer("busy", 429)
        with tenant_scope(program_a.tenant.id):
            for position, server in enumerate((failing, client.llm)):
                create_language_model(
                    name=f"m{position}", endpoint=f"{server.url}/v1", model="m", position=position
                )
        choice = client.ask(QUESTION, temperature=0.5)
        assert choice["message"]["content"] == "It is sunny."
        assert [server.requests[0].body["temperature"] for server in (failing, client.llm)] == [
            0.5, 0.5,
        ]  # fmt: skip
