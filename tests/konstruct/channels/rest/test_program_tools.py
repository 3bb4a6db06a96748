"""Tools of the program that sends a message: it gets their calls, and sends the results."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import pytest
from django.db import connections

from konstruct.orchestrator import pipeline, replies, tool_calls
from konstruct.orchestrator.agents import update_agent
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.orchestrator.models import AnswerOptions, ToolCall
from memory.models import Message
from tenants.context import tenant_scope
from tests.konstruct.channels.rest.sent import refused_fields
from tests.konstruct.channels.rest.test_streams import EVENTS, events_of
from tests.konstruct.conftest import MESSAGES, Program
from tests.konstruct.interfaces.openai.test_tools import WEATHER, calling, saying
from tests.konstruct.privacy.erasure.test_erasing_exactly import EVA
from tests.servers.llm import LLMServer


@pytest.fixture
def program(program_a: Program, llm_server: LLMServer, settings: Any) -> Program:
    settings.LLM_POOL_URL = f"{llm_server.url}/v1"
    llm_server.default = saying("It is sunny.")
    return program_a


def work(program: Program, message: Any) -> Any:
    """Answer the message as a worker does, and return its document."""
    pipeline.handle(tenant_id=program.tenant.id, message_id=UUID(message["id"]))
    return program.get(f"{MESSAGES}{message['id']}/?wait=60").json()


def ask(program: Program, **fields: Any) -> Any:
    """Send a message with a tool, and return its document with the calls."""
    sent = program.send("How is the weather?", **{"tools": [WEATHER], **fields})
    assert sent.status_code == 202, sent.content
    message = work(program, sent.json())
    assert message["status"] == "with_program"
    return message


def results_of(message: Any, *texts: str) -> list[dict[str, str]]:
    calls = message["waits_for"]["tool_calls"]
    return [
        {"tool_call_id": call["id"], "content": text}
        for call, text in zip(calls, texts, strict=True)
    ]


def give(program: Program, message: Any, *texts: str, **options: Any) -> Any:
    """Send the results of all calls of a message."""
    path = urlsplit(message["waits_for"]["results_url"]).path
    return program.post(path, {"results": results_of(message, *texts)}, **options)


def test_reply_follows_the_results_of_several_rounds(
    program: Program, llm_server: LLMServer
) -> None:
    llm_server.answers = [calling("weather", "weather", place="Porto"), calling("weather")]
    message = ask(
        program, tool_choice="required", parallel_tool_calls=True,
        options={"temperature": 0.5, "response_format": {"type": "json_object"}},
    )  # fmt: skip
    request = llm_server.requests[0].body
    assert request["response_format"] == {"type": "json_object"}
    assert (request["tools"], request["tool_choice"]) == ([WEATHER], "required")
    assert (request["parallel_tool_calls"], request["temperature"]) == (True, 0.5)
    waits_for = message["waits_for"]
    assert (waits_for["who"], waits_for["escalation"], message["reply"]) == ("program", None, None)
    first, second = waits_for["tool_calls"]
    assert (first["name"], first["arguments"]) == ("weather", {"place": "Porto"})
    assert (first["question"], first["decision_url"]) == ("", None)
    assert program.get(urlsplit(first["url"]).path).json()["state"] == "with_program"
    listed = program.get(f"{MESSAGES}?status=with_program").json()["results"]
    assert listed == [message]
    events = program.get("/api/v1/events/").json()["events"]
    waiting = [event["data"] for event in events if event["type"] == "tool_call.waiting"]
    assert {(data["id"], data["message_id"]) for data in waiting} == {
        (call["id"], message["id"]) for call in (first, second)
    }

    given = give(program, message, "22 °C", "")
    assert (given.status_code, given.json()["status"]) == (202, "queued")
    assert given.headers["Location"] == message["url"]
    again = work(program, message)
    (third,) = again["waits_for"]["tool_calls"]
    assert "tool_choice" not in llm_server.requests[1].body
    assert give(program, again, "no wind").status_code == 202
    answered = work(program, message)
    assert (answered["status"], answered["waits_for"]) == ("answered", None)
    assert answered["reply"]["content"] == "It is sunny."
    body = llm_server.requests[-1].body
    assert (body["tools"], body["temperature"]) == ([WEATHER], 0.5)
    results = [turn["content"] for turn in body["messages"] if turn["role"] == "tool"]
    assert results == ["22 °C", "", "no wind"]
    event = program.get(f"/api/v1/recall-events/?message_id={message['id']}").json()["results"][0]
    calls = program.get(urlsplit(event["url"]).path).json()["model_calls"]
    assert [(call["purpose"], call["cost"]) for call in calls] == [("reply", "0.000000")] * 3
    with tenant_scope(program.tenant.id):
        assert not AnswerOptions.objects.exists()
        assert Message.objects.filter(in_reply_to=message["id"]).count() == 1
        (decided_by,) = set(ToolCall.objects.values_list("decided_by", flat=True))
    assert decided_by == "tests, by the API"
    assert program.get(f"/api/v1/tool-calls/{third['id']}/").json()["result"] == "no wind"


def test_same_results_change_nothing_and_others_are_refused(
    program: Program, llm_server: LLMServer
) -> None:
    llm_server.answers = [calling("weather", "weather"), calling("weather")]
    message = ask(program)
    path = urlsplit(message["waits_for"]["results_url"]).path
    one, two = results_of(message, "1", "2")
    unknown = {"tool_call_id": str(uuid4()), "content": "3"}
    refusals = [
        ([], "results"),
        ([one], two["tool_call_id"]),
        ([one, two, unknown], unknown["tool_call_id"]),
        ([one, one], "once"),
        ([{**one, "content": "\0"}], "NUL"),
        ([{**one, "tool_call_id": "call_1"}], "UUID"),
        ([one] * 1_001, "at most 1,000"),
    ]
    for results, detail in refusals:
        refused = program.post(path, {"results": results})
        assert (refused.status_code, detail in refused.text) == (400, True), refused.text
    with tenant_scope(program.tenant.id):
        assert {call.state for call in ToolCall.objects.all()} == {"with_program"}
    assert give(program, message, "1", "2").status_code == 202
    assert give(program, message, "1", "2").status_code == 202
    assert give(program, message, "1", "other").status_code == 409
    again = work(program, message)
    assert give(program, message, "1", "2").json() == again
    assert give(program, again, "3").status_code == 202
    assert work(program, message)["status"] == "answered"
    repeated = give(program, again, "3")
    assert (repeated.status_code, repeated.json()["status"]) == (202, "answered")
    assert give(program, again, "4").status_code == 409
    plain = program.send("Hi").json()
    refused = program.post(f"{MESSAGES}{plain['id']}/tool-results/", {"results": [one]})
    assert refused_fields(refused) == ["results"]
    assert len(llm_server.requests) == 3


@pytest.mark.django_db(transaction=True)
def test_results_of_requests_at_once_are_stored_once(
    program: Program, llm_server: LLMServer
) -> None:
    llm_server.answers = [calling("weather")]
    message = ask(program)

    def send(text: str) -> int:
        try:
            return int(give(program, message, text).status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as threads:
        statuses = sorted(threads.map(send, ["a", "a", "b", "b"]))
    assert statuses == [202, 202, 409, 409]
    assert work(program, message)["status"] == "answered"
    assert len(llm_server.requests) == 2


def test_results_are_of_the_callers_messages(
    program: Program,
    llm_server: LLMServer,
    make_program: Callable[..., Program],
    tenant_b: Any,
) -> None:
    llm_server.answers = [calling("weather")]
    bound = program.with_key(name="maria", user_id="maria", agent_id=program.agent.id)
    message = ask(bound)
    strangers = [
        make_program(tenant_b),
        program.with_key(name="paul", user_id="paul"),
        program.with_key(name="reader", scopes=["read"]),
    ]
    statuses = [give(stranger, message, "22").status_code for stranger in strangers]
    assert statuses == [404, 404, 403]
    assert give(bound, message, "22").status_code == 202
    assert work(bound, message)["reply"]["content"] == "It is sunny."


@pytest.mark.parametrize("is_late", [False, True])
def test_results_beside_the_users_consent_end_the_choice_of_tools(
    program: Program, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch, *, is_late: bool
) -> None:
    """Late: between the worker's read of the message and its hold."""
    llm_server.answers = [calling("weather", "remember_fact", fact="It rains.")]
    with tenant_scope(program.tenant.id):
        update_agent(program.agent, tools=["remember_fact"])
    message = work(program, program.send(tools=[WEATHER], tool_choice="required").json())
    run_approved = tool_calls.run_approved

    def give_and_run(calls: Any) -> Any:
        call, row = ToolCall.objects.get(name="weather"), Message.objects.get(pk=message["id"])
        tool_calls.answer_calls(row, {call.pk: "22"}, by="tests")
        return run_approved(calls)

    if is_late:
        monkeypatch.setattr(tool_calls, "run_approved", give_and_run)
    else:
        with tenant_scope(program.tenant.id):
            give_and_run([])
    (consent,) = message["waits_for"]["tool_calls"]
    program.post(urlsplit(consent["decision_url"]).path, {"approve": True})
    assert work(program, message)["status"] == "answered"
    body = llm_server.requests[-1].body
    assert "tool_choice" not in body
    assert next(turn["content"] for turn in body["messages"] if turn["role"] == "tool") == "22"


def test_stream_ends_with_the_calls_and_continues_with_the_results(
    program: Program, llm_server: LLMServer
) -> None:
    llm_server.answers = [calling("weather")]
    message = ask(program, headers={"Idempotency-Key": "k"})
    body = {"agent": "ada", "user_id": "maria", "content": "How is the weather?"}
    keyed = program.post(MESSAGES, body, headers={**EVENTS, "Idempotency-Key": "k"})
    assert events_of(keyed)[-1] == ("message", message)
    (opening, (name, late)) = events_of(give(program, message, "22", headers=EVENTS))
    assert (opening, name, late["status"]) == (("accepted", late), "message", "queued")
    work(program, message)
    _, (name, answered) = events_of(give(program, message, "22", headers=EVENTS))
    assert (name, answered["reply"]["content"]) == ("message", "It is sunny.")


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"tools": None}, "tools"),
        ({"tools": [WEATHER] * 129}, "tools"),
        ({"tools": [5]}, "tools.0.type"),
        ({"tools": [WEATHER, {"type": "function"}]}, "tools.1.function.name"),
        ({"tools": [WEATHER], "tool_choice": 5}, "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function"}}, "tool_choice"),
        (
            {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "tide"}}},
            "tool_choice",
        ),
        ({"tools": [WEATHER], "parallel_tool_calls": "yes"}, "parallel_tool_calls"),
        ({"options": {"response_format": {"type": "xml"}}}, "options.response_format"),
    ],
)
def test_invalid_tools_are_refused_by_field(
    program: Program, sent: dict[str, Any], field: str
) -> None:
    refused = program.send(**sent)
    assert (refused.status_code, refused_fields(refused)) == (400, [field])


def test_without_a_language_model_no_call_can_be_required(
    program: Program, settings: Any, llm_server: LLMServer
) -> None:
    settings.LLM_POOL_URL = ""
    refused = program.send(tools=[WEATHER], tool_choice="required")
    assert (refused.status_code, refused_fields(refused)) == (400, ["tool_choice"])
    refused = program.send(options={"response_format": {"type": "json_object"}})
    assert (refused.status_code, refused_fields(refused)) == (400, ["options.response_format"])
    assert work(program, program.send(tools=[WEATHER]).json())["status"] == "answered"
    assert llm_server.requests == []


def test_hostile_tools_and_results_are_answered(program: Program, llm_server: LLMServer) -> None:
    llm_server.answers = [calling("weather", place="\0")]
    described = {**WEATHER["function"], "description": "a\0b \ud800"}  # type: ignore[dict-item]
    message = ask(program, tools=[{"type": "function", "function": described}])
    assert give(program, message, "sun " * 100_000).status_code == 202
    assert work(program, message)["status"] == "answered"


def test_results_after_the_deadline_or_an_answer_of_a_person_are_refused(
    program: Program, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("konstruct.orchestrator.replies.CONSENT_TIME", replies.timedelta(0))
    llm_server.answers = [calling("weather")]
    message = ask(program)
    assert work(program, message)["status"] == "closed"
    late = give(program, message, "22")
    assert (late.status_code, late.json()["type"]) == (409, "urn:konstruct:problem:wrong-state")


def test_results_of_a_person_who_is_being_erased_are_refused(
    program: Program, llm_server: LLMServer
) -> None:
    llm_server.answers = [calling("weather")]
    message = ask(program)
    with tenant_scope(program.tenant.id):
        request_erasure("maria", by=EVA)
    refused = give(program, message, "22")
    assert refused.status_code == 409
    assert refused.json()["type"] == "urn:konstruct:problem:being-erased"
    with tenant_scope(program.tenant.id):
        assert ToolCall.objects.get().result == ""
