"""The meter: every call is recorded before it is sent, and the sums equal the server's counts."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from konstruct.llm.completions import LLMUnavailable
from konstruct.orchestrator import language_models, runner, usage
from konstruct.orchestrator.agents import update_agent
from konstruct.orchestrator.builder import AgentForReply
from konstruct.orchestrator.dry_runs import dry_run
from konstruct.orchestrator.models import CallOutcome, ModelCall
from memory.models import Message
from tenants.context import connection, tenant_scope
from tests.konstruct.conftest import Program
from tests.konstruct.metered import counts_of_month
from tests.servers.llm import Answer, LLMServer

USAGE = {"prompt_tokens": 100, "completion_tokens": 10}
ANSWER = Answer({"choices": [{"message": {"content": "Noted."}}], "usage": USAGE})


@pytest.fixture(autouse=True)
def _model(llm_server: LLMServer, settings: Any) -> None:
    llm_server.default = ANSWER
    settings.LLM_PRICE_PROMPT = settings.LLM_PRICE_COMPLETION = Decimal(1000)


def ledger(llm_server: LLMServer) -> tuple[int, int]:
    """Return the requests and tokens that the server has counted."""
    return len(llm_server.requests), sum(USAGE.values()) * len(llm_server.requests)


def metered() -> tuple[int, int]:
    """Return the requests and tokens of the meter, for calls with an outcome."""
    calls = ModelCall.objects.exclude(outcome=CallOutcome.UNKNOWN)
    requests = sum(calls.values_list("requests", flat=True))
    assert counts_of_month().calls == calls.count()
    return requests, counts_of_month().tokens


def test_replies_and_dry_runs_are_metered(
    program: Program, send_message: Callable[..., Any], llm_server: LLMServer, settings: Any
) -> None:
    send_message("How are you?")
    used = dry_run(program.agent, "Hello", user_id=None).usage
    assert used == {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    assert metered() == ledger(llm_server) == (2, 220)
    rows = ModelCall.objects.values_list("purpose", "agent_id", "outcome", "prompt_tokens", "cost")
    assert sorted(rows) == [
        ("dry run", program.agent.pk, "done", 100, Decimal("0.11")),
        ("reply", program.agent.pk, "done", 100, Decimal("0.11")),
    ]
    settings.LLM_PRICE_PROMPT = Decimal(1)  # stored prices stay
    prices = set(ModelCall.objects.values_list("prompt_price", "completion_price"))
    assert prices == {(1000, 1000)}
    counts = counts_of_month()
    assert (counts.messages, counts.replies, counts.memories) == (1, 1, 2)


def test_a_call_names_its_message_endpoint_agent_version_and_the_reason_of_a_failure(
    program: Program, send_message: Callable[..., Any], llm_server: LLMServer
) -> None:
    llm_server.answers = [Answer({"error": {"message": "No such model."}}, 400)]
    failed = send_message("How are you?", thread_id="t1")
    update_agent(program.agent, persona="Brief.")
    answered = send_message("And now?", thread_id="t2")
    calls = ModelCall.objects.order_by("created_at")
    host = llm_server.url.partition("://")[2]
    assert [(call.message_id, call.agent_version, call.endpoint) for call in calls] == [
        (failed.pk, None, host), (answered.pk, 2, host),
    ]  # fmt: skip
    assert "refused the request (HTTP 400)" in calls[0].error
    reply = Message.objects.get(in_reply_to=answered)
    assert usage.last_calls([failed, reply]) == {failed.pk: calls[0], reply.pk: calls[1]}


def test_each_round_of_tools_is_a_call(
    program: Program, send_message: Callable[..., Any], llm_server: LLMServer
) -> None:
    program.agent.tools = ["remember_fact"]
    program.agent.save()
    wants = {"function": {"name": "remember_fact", "arguments": '{"nonsense": 1}'}}
    llm_server.answers = [
        Answer({"choices": [{"message": {"content": "", "tool_calls": [wants]}}], "usage": USAGE})
    ]
    send_message("Remember that I like tea.")
    assert metered() == ledger(llm_server) == (2, 220)


def test_requests_that_are_repeated_are_counted_in_one_call(
    program: Program, send_message: Callable[..., Any], llm_server: LLMServer
) -> None:
    llm_server.answers = [Answer("busy", 503)]
    send_message("Are you there?")
    (call,) = ModelCall.objects.all()
    assert (call.outcome, call.requests, len(llm_server.requests)) == ("done", 2, 2)


def test_a_call_that_fails_is_counted_without_tokens(
    program: Program, llm_server: LLMServer
) -> None:
    llm_server.default = Answer("busy", 503, headers={"Retry-After": "3600"})
    with tenant_scope(program.tenant.id):
        asked = AgentForReply(program.agent, meter={"agent_id": program.agent.pk})
        with pytest.raises(LLMUnavailable):
            runner.complete(_Message(), asked, [{"role": "user", "content": "?"}])
        (call,) = ModelCall.objects.all()
        assert (call.outcome, call.prompt_tokens, call.requests) == ("failed", 0, 1)
        counts = counts_of_month()
    assert (counts.calls, counts.failed, counts.tokens) == (1, 1, 0)


class _Message:
    content = "?"


def test_a_call_costs_one_statement_before_and_one_after(
    program: Program, llm_server: LLMServer
) -> None:
    with tenant_scope(program.tenant.id), CaptureQueriesContext(connection) as queries:
        runner.run_agent(_Message(), program.agent)
    statements = [query["sql"].strip().split()[0] for query in queries]
    assert [statement for statement in statements if statement in ("INSERT", "WITH")] == [
        "INSERT",
        "WITH",
    ]
    assert len([statement for statement in statements if statement != "SAVEPOINT"]) <= 3


def test_calls_outside_of_tenants_or_without_a_model_are_not_metered(
    program_a: Program, llm_server: LLMServer, settings: Any
) -> None:
    settings.LLM_POOL_URL = llm_server.url
    runner.run_agent(_Message(), program_a.agent)
    assert len(llm_server.requests) == 1
    settings.LLM_POOL_URL = ""
    with tenant_scope(program_a.tenant.id):
        runner.run_agent(_Message(), program_a.agent)
        assert not ModelCall.objects.exists()


@pytest.mark.parametrize("step", ["before the request", "after the answer"])
def test_call_of_a_killed_process_is_unknown_and_the_rest_equals_the_model_calls(
    program: Program, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The outcome of a killed call is never recorded."""
    message = [{"role": "user", "content": "?"}]
    asked = AgentForReply(program.agent, meter={"agent_id": program.agent.pk})
    with monkeypatch.context() as patch:
        if step == "before the request":
            patch.setattr(language_models, "language_model", _killed)
        patch.setattr(runner, "finish_call", lambda *_, **__: None)
        try:
            runner.complete(_Message(), asked, message)
        except KeyboardInterrupt:
            assert step == "before the request"
    runner.complete(_Message(), asked, message)
    unknown = ModelCall.objects.filter(outcome=CallOutcome.UNKNOWN)
    assert unknown.count() == 1
    lost = len(llm_server.requests) - metered()[0]
    assert lost == (1 if step == "after the answer" else 0)
    (row,) = usage.model_usage(since=timezone.now() - timedelta(days=1))
    assert (row.calls, row.unknown, row.prompt_tokens) == (2, 1, 100)


def _killed(timeout: float | None = None) -> Any:
    raise KeyboardInterrupt
