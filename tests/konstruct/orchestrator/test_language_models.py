"""Language models of a tenant: their chain, keys, limits and failures, with servers on loopback."""

import json
import logging
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone
from django_redis import get_redis_connection

from konstruct.llm.completions import LLMError, LLMRefused, LLMTimeout, LLMUnavailable
from konstruct.orchestrator import language_models, runner
from konstruct.orchestrator.agents import create_agent, update_agent
from konstruct.orchestrator.builder import AgentForReply
from konstruct.orchestrator.dry_runs import LanguageModelTest, measure_language_model
from konstruct.orchestrator.exceptions import AgentInvalid, LanguageModelInvalid, WrongState
from konstruct.orchestrator.extraction import fact_requests, runs
from konstruct.orchestrator.models import ExtractionRun, LanguageModel, ModelCall, PendingReply
from memory.models import Message
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program
from tests.konstruct.orchestrator.conftest import reply
from tests.servers.llm import Answer, LLMServer, streamed

Models = tuple[LanguageModel, LanguageModel]
Servers = tuple[LLMServer, LLMServer]
KEY = "sk-of-the-first-model"
PROMPT = [{"role": "user", "content": "Hello"}]
USAGE = {"prompt_tokens": 1_000_000, "completion_tokens": 1_000_000}


@pytest.fixture
def servers(program: Program, settings: Any) -> Iterator[Servers]:
    """Two servers of the tenant, on an allowed host. The second one answers "From the second."."""
    settings.WEBHOOK_HOSTS = ["127.0.0.1"]
    with LLMServer() as first, LLMServer() as second:
        text = {"message": {"content": "From the second."}}
        second.default = Answer({"choices": [text], "usage": USAGE})
        yield first, second


@pytest.fixture
def chain(servers: Servers) -> Models:
    """The default chain of tenant A."""
    first, second = servers
    return (
        language_models.create_language_model(
            name="first", endpoint=f"{first.url}/v1", key=KEY, model="m1", position=1
        ),
        language_models.create_language_model(
            name="second",
            endpoint=f"{second.url}/v1",
            model="m2",
            position=2,
            prompt_price=Decimal("2.5"),
            completion_price=10,
        ),
    )


def ask(program: Program, **options: Any) -> str:
    return runner.complete(None, AgentForReply(program.agent, **options), PROMPT).text


def calls() -> list[tuple[str, str, str]]:
    rows = ModelCall.objects.order_by("created_at")
    return list(rows.values_list("language_model", "model", "outcome"))


FAILED_AND_DONE = [("first", "m1", "failed"), ("second", "m2", "done")]


@pytest.mark.parametrize(
    "answer",
    [
        Answer("busy", 429, {"Retry-After": "3600"}),
        Answer("broken", 500),
        Answer({"error": "invalid key"}, 401),
        Answer({"error": "no response_format"}, 400),
        Answer({"choices": [{"message": {"content": ""}}]}),
        Answer({"choices": [{"message": {"content": ""}, "finish_reason": "length"}]}),
        Answer("<html>"),
        Answer({"content": "x" * 1000}, cut_after=20),
        Answer("", wait=True),
        Answer("x" * 1000, drip=0.1),
        Answer("", 302, {"Location": "http://127.0.0.1:1/"}),
    ],
    ids=[
        *("429", "500", "401", "refused schema", "empty", "cut before the text", "no JSON"),
        *("dies", "hangs", "trickles", "redirects"),
    ],
)
def test_the_next_model_answers_if_one_fails(
    answer: Answer,
    send_message: Callable[..., Message],
    chain: Models,
    servers: Servers,
    llm_server: LLMServer,
) -> None:
    servers[0].default = answer
    language_models.update_language_model(chain[0], timeout_seconds=1)
    assert reply(send_message()) == "From the second."
    assert calls() == FAILED_AND_DONE
    failed, done = ModelCall.objects.order_by("created_at")
    assert (failed.requests, failed.endpoint) == (1, servers[0].url.partition("//")[2])
    assert (failed.cost, done.cost) == (0, Decimal("12.5"))
    assert (done.prompt_price, done.completion_price) == (Decimal("2.5"), 10)
    assert llm_server.requests == []


def test_answers_that_trickle_end_at_the_time_of_the_chain(
    program: Program, chain: Models, servers: Servers, settings: Any
) -> None:
    settings.LLM_TIMEOUT = 3
    for server in servers:
        server.default = Answer("x" * 10_000, drip=0.1)
    with pytest.raises(LLMTimeout, match="did not answer within 1"):
        ask(program)
    assert calls() == [("first", "m1", "failed"), ("second", "m2", "failed")]


def test_after_a_streamed_text_no_other_model_answers(
    program: Program, chain: Models, servers: Servers
) -> None:
    servers[0].default = streamed("Hel", whole=False)
    pieces: list[str] = []
    with pytest.raises(LLMUnavailable, match="broke off"):
        ask(program, on_text=pieces.append)
    assert (pieces, servers[1].requests) == (["Hel"], [])


def test_extraction_calls_the_next_model_if_one_refuses_the_schema(
    program: Program, chain: Models, servers: Servers
) -> None:
    fact_requests.supported_formats.clear()
    servers[0].default = Answer({"error": "unknown response_format"}, 400)
    content = json.dumps({"facts": []})
    servers[1].default = Answer({"choices": [{"message": {"content": content}}], "usage": USAGE})
    message = Message(role="user", content="Hi", user_id="", created_at=timezone.now())
    run: ExtractionRun = runs.extract_unsaved_messages(
        program.agent, "maria", [message], requested_by="x", timeout=5
    ).run
    assert (run.model, run.response_format, run.cost) == ("m2", "json_schema", Decimal("12.5"))
    assert run.endpoint == servers[1].url.partition("//")[2]


def test_a_model_that_fails_often_is_left_out_for_a_while(
    program: Program, chain: Models, servers: Servers
) -> None:
    first, second = servers
    first.default = Answer("busy", 503)
    for _ in range(language_models.MAX_FAILURES + 2):
        assert ask(program) == "From the second."
    assert (len(first.requests), len(second.requests)) == (
        language_models.MAX_FAILURES,
        language_models.MAX_FAILURES + 2,
    )
    (paused,) = cache.get_many([f"model_paused:{model.pk}" for model in chain])
    assert paused == f"model_paused:{chain[0].pk}"
    keys = [key.decode() for key in get_redis_connection("default").keys("*model_paused*")]
    assert [key.partition(":")[0] for key in keys] == [str(program.tenant.pk)]
    get_redis_connection("default").flushdb()
    ask(program)
    assert len(first.requests) == language_models.MAX_FAILURES + 1


def test_refused_requests_pause_no_model(program: Program, chain: Models, servers: Servers) -> None:
    servers[0].default = Answer({"error": "too long"}, 400)
    for _ in range(language_models.MAX_FAILURES + 1):
        ask(program)
    assert len(servers[0].requests) == language_models.MAX_FAILURES + 1


def test_an_agent_calls_its_own_models_then_the_default_ones_then_the_deployment(
    program: Program, chain: Models, servers: Servers, llm_server: LLMServer, settings: Any
) -> None:
    settings.LLM_API_KEY = "sk-of-the-deployment"
    assert ask(program) == "Noted."
    request = servers[0].requests[-1]
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.body["model"] == "m1"
    update_agent(program.agent, language_models=["second", "first"])
    assert ask(program) == "From the second."
    language_models.update_language_model(chain[1], is_active=False)
    assert ask(program) == "Noted."
    language_models.update_language_model(chain[0], is_active=False)
    with pytest.raises(LLMRefused, match=language_models.NONE_ACTIVE):
        ask(program)
    language_models.create_language_model(name="deployment's", model="m3")
    update_agent(program.agent, language_models=["deployment's"], model="mine")
    assert (ask(program), llm_server.requests[-1].body["model"]) == ("Noted.", "m3")
    assert llm_server.requests[-1].headers["Authorization"] == "Bearer sk-of-the-deployment"
    update_agent(program.agent, language_models=[])
    for model in chain:
        language_models.update_language_model(model, position=None)
    assert (ask(program), llm_server.requests[-1].body["model"]) == ("Noted.", "mine")
    assert calls()[-1] == ("", "mine", "done")


def test_a_model_without_tokens_for_today_is_left_out(
    program: Program, chain: Models, servers: Servers
) -> None:
    usage = {"prompt_tokens": 60, "completion_tokens": 40}
    servers[0].default = Answer({"choices": [{"message": {"content": "1"}}], "usage": usage})
    language_models.update_language_model(chain[0], max_tokens_per_day=100)
    language_models.update_language_model(chain[1], max_tokens_per_day=2_000_000)
    assert [ask(program), ask(program)] == ["1", "From the second."]
    with pytest.raises(LLMRefused) as caught:
        ask(program)
    assert str(caught.value) == language_models.LIMIT_REACHED


def test_equal_models_of_two_tenants_have_their_own_keys_and_pauses(
    program: Program, program_b: Program, chain: Models, servers: Servers
) -> None:
    first, second = servers
    first.default = Answer("busy", 503)
    for _ in range(language_models.MAX_FAILURES):
        ask(program)
    sealed = LanguageModel.objects.get(name="first").secret_key
    with tenant_scope(program_b.tenant.pk):
        assert not LanguageModel.objects.exists()
        for name, server in (("first", first), ("second", second)):
            language_models.create_language_model(
                id=chain[0].pk if name == "first" else chain[1].pk,
                name=name,
                endpoint=f"{server.url}/v1",
                key="sk-of-tenant-b",
                position=1 if name == "first" else 2,
            )
        assert ask(program_b) == "From the second."
        assert first.requests[-1].headers["Authorization"] == "Bearer sk-of-tenant-b"
        assert LanguageModel.objects.get(name="first").secret_key != sealed
        LanguageModel.objects.filter(name="first").update(secret_key=sealed)
        assert ask(program_b) == "From the second."
        failed = ModelCall.objects.filter(outcome="failed").latest("created_at")
        assert "was encrypted for another place" in failed.error
    assert len(first.requests) == language_models.MAX_FAILURES + 1
    assert language_models.key_of(LanguageModel.objects.get(name="first")) == KEY


def test_no_error_or_log_has_the_key(
    program: Program,
    send_message: Callable[..., Message],
    chain: Models,
    servers: Servers,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    language_models.update_language_model(chain[0], key="plainword77")
    language_models.update_language_model(chain[1], is_active=False)
    servers[0].default = Answer({"error": "Authorization: Bearer plainword77 plainword77"}, 400)
    send_message()
    with pytest.raises(LLMError) as caught:
        ask(program)
    assert servers[0].requests[0].headers["Authorization"] == "Bearer plainword77"
    pending = PendingReply.objects.get()
    (call, _) = ModelCall.objects.all()
    shown = f"{caught.value}{caught.value.detail}{pending.last_error}{call.error}{caplog.text}"
    assert "HTTP 400" in shown
    assert "plainword77" not in shown


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"endpoint": "https://127.0.0.1/v1"}, "is no address of the public internet"),
        ({"endpoint": "http://llm.example.com/v1"}, "must begin with https"),
        ({"endpoint": "https://u:p@llm.example.com/v1"}, "a user, a password"),
        ({"endpoint": "https://llm.example.com/v1?key=x"}, "An address with a query"),
        ({"name": "first"}, "has a language model of that name"),
        ({"name": " "}, "name"),
        ({"timeout_seconds": 61}, "Give at most 60"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"prompt_price": -1}, "prompt_price"),
        ({"key": "two words"}, "letters, digits and signs"),
        ({"endpoint": "", "key": KEY}, "The deployment's server has its own key"),
    ],
)
def test_invalid_models_are_refused(
    chain: Models, settings: Any, fields: dict[str, Any], message: str
) -> None:
    settings.WEBHOOK_HOSTS = []
    with pytest.raises(LanguageModelInvalid, match=message):
        language_models.create_language_model(
            **{"name": "other", "endpoint": "https://llm.example.com/v1", **fields}
        )
    assert LanguageModel.objects.count() == 2


def test_a_key_is_not_sent_to_another_address(chain: Models, settings: Any) -> None:
    with pytest.raises(LanguageModelInvalid, match="Enter the key again"):
        language_models.update_language_model(chain[0], endpoint="http://127.0.0.1:9/v1")
    settings.CHANNEL_TOKEN_KEYS = []
    with pytest.raises(LanguageModelInvalid, match="CHANNEL_TOKEN_KEYS"):
        language_models.update_language_model(LanguageModel.objects.get(name="first"), key="new")


def test_models_that_agents_name_stay(program: Program, chain: Models) -> None:
    with pytest.raises(AgentInvalid, match="no language model 'third'"):
        update_agent(program.agent, language_models=["first", "third"])
    program.agent.refresh_from_db()
    update_agent(program.agent, language_models=["first"])
    for change in (
        language_models.delete_language_model,
        lambda model: language_models.update_language_model(model, name="new"),
    ):
        with pytest.raises(WrongState, match="'ada'"):
            change(LanguageModel.objects.get(name="first"))
    language_models.delete_language_model(chain[1])
    assert LanguageModel.objects.get().name == "first"


def test_a_test_says_what_a_model_can_do(chain: Models, servers: Servers) -> None:
    tool_call = {"id": "1", "function": {"name": "get_weather", "arguments": "{}"}}
    servers[0].answers = [
        streamed("O", "K"),
        Answer({"choices": [{"message": {"content": "", "tool_calls": [tool_call]}}]}),
        Answer({"choices": [{"message": {"content": '{"result": 4}'}}]}),
    ]
    able = measure_language_model(chain[0])
    assert (able.problem, able.streams, able.calls_tools, able.follows_schema) == ("", *[True] * 3)
    assert able.first_text_seconds is not None
    assert able.seconds is not None
    assert able.first_text_seconds <= able.seconds
    servers[0].default = Answer("no", 400)
    failed = measure_language_model(chain[0])
    assert failed == LanguageModelTest(problem=failed.problem)
    assert "HTTP 400" in failed.problem
    plain = measure_language_model(chain[1])
    assert (plain.problem, plain.first_text_seconds, plain.streams) == ("", None, False)
    assert (plain.calls_tools, plain.follows_schema) == (False, False)
    purposes = ModelCall.objects.values_list("purpose", flat=True)
    assert (set(purposes), len(purposes)) == ({"test"}, 7)


def test_an_agent_that_has_used_its_tokens_of_the_day_gives_no_reply(
    program: Program, send_message: Callable[..., Message], llm_server: LLMServer
) -> None:
    usage = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}
    llm_server.default = Answer({"choices": [{"message": {"content": "Yes."}}], "usage": usage})
    update_agent(program.agent, max_tokens_per_day=101)
    assert [reply(send_message()) for _ in range(2)] == ["Yes.", "Yes."]
    send_message()
    assert PendingReply.objects.get().last_error == language_models.AGENT_LIMIT_REACHED
    assert len(llm_server.requests) == 2
    runner.complete(None, AgentForReply(program.agent, meter={"purpose": "extraction"}), PROMPT)
    other = create_agent(tenant_id=program.tenant.id, name="bo", max_tokens_per_day=1)
    assert runner.complete(None, AgentForReply(other), PROMPT).text == "Yes."
