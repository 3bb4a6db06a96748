"""Facts that a language model extracts from added messages, and memories without them."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from konstruct.interfaces.mem0 import memories as extraction
from konstruct.orchestrator import runner
from konstruct.orchestrator.extraction import fact_requests
from konstruct.orchestrator.models import ExtractionRun, ModelCall, RunState
from memory.models import MemoryEntry, Message
from tenants.context import connection, tenant_scope
from tenants.limits.fair_shares import FairShares
from tests.konstruct.conftest import Program
from tests.konstruct.interfaces.mem0.calls import ADD, listed, refusal
from tests.servers.llm import Answer, LLMServer

pytestmark = pytest.mark.django_db

CONVERSATION = [
    {"role": "system", "content": "You are kind."},
    {"role": "user", "content": "Hi! I moved to Porto, and walnuts make me ill."},
    {"role": "assistant", "content": "I see."},
]
BODY: dict[str, Any] = {"messages": CONVERSATION, "user_id": "carl", "metadata": {"n": 1}}
LEFT_OUT = {"messages[0]": "The role is system: only texts of users and assistants are stored."}
FACTS = ["The user lives in Porto.", "Walnuts make the user ill."]


def extracted(fact: str, quote: str, **fields: Any) -> dict[str, Any]:
    """Return a fact of an answer."""
    return {
        "quote": quote,
        "subject": "user",
        "slot": "home_city",
        "multi": False,
        "value": fact[-20:],
        "fact": fact,
        **fields,
    }


FOUND = [
    extracted(FACTS[0], "I moved to Porto"),
    extracted(FACTS[1], "walnuts make me ill", slot="avoided_food", multi=True),
]


@pytest.fixture
def model(llm_server: LLMServer, settings: Any) -> Iterator[LLMServer]:
    settings.LLM_POOL_URL, settings.LLM_API = llm_server.url, "pool"
    return llm_server


def add_answer(model: LLMServer, text: str) -> None:
    model.answers.append(Answer({"content": text}))


@pytest.mark.parametrize("form", ["{}", "```json\n{}\n```", "Here it is: {} Bye."])
def test_extracted_facts_are_stored_instead_of_messages(
    program: Program, model: LLMServer, form: str
) -> None:
    add_answer(model, form.replace("{}", json.dumps({"facts": [*FOUND, FOUND[0], "  "]})))
    answer = program.post(ADD, BODY).json()
    assert [memory["memory"] for memory in answer["results"]] == FACTS
    assert [memory["metadata"] for memory in answer["results"]] == [{"n": 1}] * 2
    assert answer["ignored"] == LEFT_OUT
    assert listed(program, {"user_id": "carl"}) == sorted(FACTS)
    (request,) = model.requests
    conversation = request.question
    assert '"text": "Hi! I moved to Porto' in conversation
    assert '"text": "I see."' in conversation
    assert "You are kind." not in conversation


def test_extraction_passes_through_run_agent(
    program: Program, model: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = []

    def canned(msg: Any, agent: Any, messages: Any = None) -> str:
        requests.append((msg.tenant_id, agent.name, messages[-1]["content"] == msg.content))
        return json.dumps({"facts": FOUND[:1]})

    monkeypatch.setattr(runner, "run_agent", canned)
    answer = program.post(ADD, BODY).json()
    assert [memory["memory"] for memory in answer["results"]] == FACTS[:1]
    assert requests == [(program.tenant.id, "mem0", True)]
    assert model.requests == []


def test_answer_without_facts_stores_nothing(program: Program, model: LLMServer) -> None:
    add_answer(model, '{"facts": []}')
    assert program.post(ADD, BODY).json() == {"results": [], "ignored": LEFT_OUT}
    assert listed(program, {"user_id": "carl"}) == []


@pytest.mark.parametrize(
    "answer",
    [
        "I cannot.", "{}", "[]", '{"facts": "a"}', json.dumps({"facts": FOUND * 101}),
        "{" * 10_000 + "}" * 10_000, '{"facts": ["a"], "facts": []}',
    ],
)  # fmt: skip
def test_unreadable_answer_loses_no_memory(program: Program, model: LLMServer, answer: str) -> None:
    add_answer(model, answer)
    first_answer = program.post(ADD, BODY).json()
    assert [memory["memory"] for memory in first_answer["results"]] == [CONVERSATION[1]["content"]]
    assert first_answer["ignored"]["infer"] == extraction.NO_ANSWER


def test_as_many_wait_for_the_model_as_may(
    program: Program, model: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fact_requests, "request_slots", FairShares(0))
    monkeypatch.setattr(fact_requests, "SLOT_TIMEOUT_SECONDS", 0.1)
    answer = program.post(ADD, BODY)
    assert (answer.status_code, answer.json()["detail"]) == (
        503,
        "Too many requests wait for the language model: no slot was free for 0.1 seconds, and"
        " nothing was stored. Send the request again later.",
    )
    assert model.requests == []
    assert listed(program, {"user_id": "carl"}) == []


@pytest.mark.parametrize(
    ("message", "infer", "reason"),
    [
        ({"role": "assistant", "content": "Hi"}, True, "Facts are extracted from users' texts"),
        ({"role": "user", "content": "\u200b \u3164"}, True, "The text is blank."),
        ({"role": "user", "content": "\u200b"}, False, "The text is blank."),
        ({"role": "system", "content": "Be kind."}, False, "The role is system"),
        ({"role": "tool", "content": "17"}, True, "The role is tool"),
    ],
)
def test_each_message_that_is_left_out_has_a_reason(
    program: Program, model: LLMServer, message: dict[str, str], infer: bool, reason: str
) -> None:
    answer = program.post(ADD, {"messages": [message], "user_id": "carl", "infer": infer}).json()
    assert answer["results"] == []
    assert answer["ignored"]["messages[0]"].startswith(reason)
    assert model.requests == []


def test_a_new_value_of_a_slot_ends_the_old_one_without_an_agent(
    program: Program, model: LLMServer
) -> None:
    for city in ("Berlin", "Rome", "Rome", "Berlin"):
        quote = f"I live in {city}."
        fact = extracted(f"The user lives in {city}.", quote, value=city)
        add_answer(model, json.dumps({"facts": [fact]}))
        body = {"messages": [{"role": "user", "content": quote}], "user_id": "carl"}
        assert program.post(ADD, body).status_code == 200
        assert listed(program, {"user_id": "carl"}) == [f"The user lives in {city}."]
    assert '"Rome"' in model.requests[-1].question  # a known fact


def test_slow_requests_of_one_tenant_do_not_keep_the_model_from_another(
    program: Program, model: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenant with all of its slots busy is refused; the facts of another one are extracted."""
    monkeypatch.setattr(fact_requests, "SLOT_TIMEOUT_SECONDS", 0.1)
    tenant_id, another = program.tenant.id, uuid4()
    for slow in (tenant_id, another):
        own = 0
        while fact_requests.request_slots.enter(slow):
            own += 1
        add_answer(model, json.dumps({"facts": FOUND}))
        assert program.post(ADD, BODY).status_code == (503 if slow == tenant_id else 200)
        for _ in range(own):
            fact_requests.request_slots.leave(slow)
        model.answers.clear()
    assert fact_requests.request_slots.in_flight() == 0


def test_model_is_called_outside_of_a_transaction_and_only_when_needed(
    program: Program, model: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside: list[int] = []
    real = extraction.extract_facts
    standing = len(connection.savepoint_ids)

    def looking(*arguments: Any, **keywords: Any) -> Any:
        inside.append(len(connection.savepoint_ids) - standing)
        return real(*arguments, **keywords)

    monkeypatch.setattr("konstruct.interfaces.mem0.memories.extract_facts", looking)
    add_answer(model, json.dumps({"facts": FOUND}))
    assert program.post(ADD, BODY).status_code == 200
    assert inside == [0]
    refusal(program.post(ADD, {"messages": "a", "run_id": "r"}))
    unknown = {"messages": "a", "user_id": "carl", "agent_id": str(program.tenant.id)}
    refusal(program.post(ADD, unknown), 422)
    assert inside == [0]
    program.post(ADD, {**BODY, "infer": False})
    assert inside == [0]


def test_with_an_agent_facts_rest_on_messages_of_the_transcript(
    program: Program, model: LLMServer
) -> None:
    add_answer(model, json.dumps({"facts": FOUND}))
    body = {**BODY, "agent_id": program.agent.name, "run_id": "r1"}
    headers = {"Idempotency-Key": "porto"}
    answer = program.post(ADD, body, headers=headers).json()
    assert [memory["memory"] for memory in answer["results"]] == [FACTS[0], FACTS[1]]
    with tenant_scope(program.tenant.id):
        messages = Message.objects.order_by("number")
        assert [message.content for message in messages] == [
            CONVERSATION[1]["content"],
            CONVERSATION[2]["content"],
        ]
        assert {(message.user_id, message.thread_id) for message in messages} == {("carl", "r1")}
        run = ExtractionRun.objects.get()
        assert (run.state, run.message_ids) == (
            RunState.APPLIED,
            [message.pk for message in messages],
        )
        entry = MemoryEntry.objects.get(content=FACTS[0])
        assert (entry.run_id, entry.metadata) == (run.pk, {"n": 1, "run_id": "r1"})
        assert [evidence.quote for evidence in entry.evidence.all()] == ["I moved to Porto"]
        assert ModelCall.objects.get().agent_id == program.agent.id
    add_answer(model, json.dumps({"facts": FOUND[:1]}))
    program.post(ADD, body, headers=headers)
    with tenant_scope(program.tenant.id):
        assert (Message.objects.count(), ExtractionRun.objects.count()) == (2, 1)


def test_facts_that_wait_for_a_review_are_counted(program: Program, model: LLMServer) -> None:
    illness = {**FOUND[1], "fact": "The user is allergic to walnuts.", "slot": "allergy"}
    add_answer(model, json.dumps({"facts": [FOUND[0], illness]}))
    answer = program.post(ADD, {**BODY, "agent_id": program.agent.name}).json()
    assert [memory["memory"] for memory in answer["results"]] == FACTS[:1]
    assert answer["ignored"]["review"] == "Facts that wait for a review of a person: 1."
