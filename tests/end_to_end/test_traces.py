"""Traces of real web and worker processes, received by a real collector."""

import json
import re
import secrets
from typing import Any

import httpx
import pytest

from tests.end_to_end.deployment import Deployment, Tenant, eventually
from tests.servers.llm import Answer
from tests.servers.otlp import Collector, Seen
from tests.servers.slack import SlackServer, mention, signed

pytestmark = pytest.mark.slow

# In message texts, user ids, and all other values of a caller.
CANARY = "CANARY7f3a"


def new_trace() -> tuple[str, dict[str, str]]:
    """Return the id of a trace, and the traceparent header of a client."""
    trace_id = secrets.token_hex(16)
    return trace_id, {"traceparent": f"00-{trace_id}-{'c' * 16}-01"}


def send(tenant: Tenant, headers: dict[str, str], **fields: Any) -> str:
    body = {"agent": "ada", "user_id": "maria", "content": "Hello", **fields}
    with tenant.client() as client:
        response = client.post("/api/v1/messages/", json=body, headers=headers)
    assert response.status_code == 202, response.text
    return str(response.json()["id"])


def named(spans: list[Seen], name: str) -> list[Seen]:
    return [span for span in spans if span.name == name]


def has(*names: str) -> Any:
    return lambda spans: {*names} <= {span.name for span in spans}


def test_a_message_is_one_trace_from_the_request_to_its_embedding_and_log_lines_name_it(
    deployment: Deployment, collector: Collector
) -> None:
    tenant = deployment.tenants[0]
    trace_id, headers = new_trace()
    message_id = send(tenant, headers)
    tenant.wait_for(message_id)
    post = "POST /api/v1/messages/"
    spans = collector.wait_for(
        trace_id, lambda spans: has(post, "model")(spans) and len(named(spans, "embed")) == 2
    )
    assert {span.name for span in spans} == {post, "job reply", "recall", "model", "embed"}
    (request,), (reply,) = named(spans, post), named(spans, "job reply")
    (recall,), (model,) = named(spans, "recall"), named(spans, "model")
    assert request.parent == "c" * 16
    assert (request.kind, reply.kind, model.kind) == ("SERVER", "CONSUMER", "CLIENT")
    assert reply.parent == request.id
    assert recall.parent == model.parent == reply.id
    # The request wrote the user's message, the worker wrote the reply.
    assert {span.parent for span in named(spans, "embed")} == {request.id, reply.id}
    assert {span.process for span in spans} >= {"web"}
    assert request.process == "web"
    assert reply.process.startswith("worker ")
    tenant_id, agent_id = str(tenant.id), str(tenant.agent_id)
    assert {span.attributes["konstruct.tenant.id"] for span in spans} == {tenant_id}
    assert request.attributes == {
        "http.request.method": "POST",
        "http.route": "/api/v1/messages/",
        "http.response.status_code": 202,
        "konstruct.interface": "rest",
        "konstruct.tenant.id": tenant_id,
    }
    assert reply.attributes == {
        "konstruct.tenant.id": tenant_id,
        "konstruct.agent.id": agent_id,
        "konstruct.job.kind": "reply",
        "konstruct.job.key": message_id,
        "konstruct.job.attempt": 1,
    }
    assert recall.attributes["konstruct.agent.id"] == agent_id
    assert model.attributes["server.address"] == deployment.llm.url.removeprefix("http://")
    assert not any(span.is_error for span in spans)
    logs = {name: (deployment.home / f"{name}.log").read_text() for name in ("web", "worker")}
    for name, span in (("web", request), ("worker", reply)):
        assert f"trace_id={trace_id} span_id={span.id}]" in logs[name]
    (line,) = re.findall(rf".*konstruct\.access.*{trace_id}.*", logs["web"])
    assert re.search(r"\]: POST /api/v1/messages/ 202 \d+ ms$", line)


def test_a_mention_in_slack_is_one_trace_to_its_delivery(
    deployment: Deployment, collector: Collector
) -> None:
    tenant, slack = deployment.tenants[0], deployment.slack
    assert isinstance(slack, SlackServer)
    deployment.manage(
        "connect_slack", "--tenant", tenant.slug, "--agent", "ada", "--workspace", "T1",
        SLACK_BOT_TOKEN=slack.workspaces["T1"].token,
    )  # fmt: skip
    trace_id, headers = new_trace()
    body = json.dumps(mention("T1", "Hello", channel="C9")).encode()
    answer = httpx.post(
        f"{deployment.url}/channels/slack/events/",
        content=body,
        headers={"Host": "localhost", **signed(body), **headers},
    )
    assert answer.status_code == 200
    slack.wait_for(lambda: slack.posts("T1", "C9") == ["Noted."], seconds=60)
    post = "POST /channels/slack/events/"

    def is_complete(spans: list[Seen]) -> bool:
        replies = {span.id for span in named(spans, "job reply")}
        deliveries = [span for span in named(spans, "job delivery") if span.parent in replies]
        return bool(deliveries) and has(post, "job arrival", "model", "recall")(spans)

    spans = collector.wait_for(trace_id, is_complete)
    (request,), (arrival,) = named(spans, post), named(spans, "job arrival")
    (reply,), (model,) = named(spans, "job reply"), named(spans, "model")
    assert (arrival.parent, reply.parent, model.parent) == (request.id, arrival.id, reply.id)
    deliveries = named(spans, "job delivery")
    assert {span.parent for span in deliveries} <= {arrival.id, reply.id}
    assert {span.attributes["konstruct.channel"] for span in deliveries} == {"slack"}


@pytest.mark.data
def test_the_job_of_a_killed_worker_is_in_the_trace(
    deployment: Deployment, collector: Collector
) -> None:
    tenant = deployment.tenants[0]
    trace_id, headers = new_trace()
    deployment.order_deaths(["before run_agent"])
    message_id = send(tenant, headers, thread_id="killed")
    tenant.wait_for(message_id)
    assert deployment.open_orders() == []
    spans = collector.wait_for(trace_id, has("job reply", "model"))
    (reply,) = named(spans, "job reply")  # the killed process sent none
    (request,) = named(spans, "POST /api/v1/messages/")
    assert reply.parent == request.id
    assert reply.attributes["konstruct.job.attempt"] == 2


def test_a_retry_is_in_the_trace_of_the_attempt_that_failed(
    deployment: Deployment, collector: Collector
) -> None:
    tenant = deployment.tenants[0]
    trace_id, headers = new_trace()
    deployment.llm.answers = [Answer("busy", 503)] * 3  # all tries of an attempt
    tenant.wait_for(send(tenant, headers, thread_id="retried"))
    spans = collector.wait_for(trace_id, lambda spans: len(named(spans, "job reply")) == 2)
    failed, done = sorted(
        named(spans, "job reply"), key=lambda span: span.attributes["konstruct.job.attempt"]
    )
    assert done.parent == failed.parent
    assert (failed.is_error, done.is_error) == (True, False)
    tries = [span for span in named(spans, "model") if span.parent == failed.id]
    assert len(tries) == 3
    for span in (failed, *tries):
        assert span.attributes["error.type"] == "llm_unavailable"
        assert span.attributes["exception.type"] == "konstruct.llm.completions.LLMUnavailable"


def test_exported_traces_contain_no_message_text(
    deployment: Deployment, collector: Collector
) -> None:
    tenant = deployment.tenants[1]
    trace_id, headers = new_trace()
    call = {
        "id": "call-1",
        "type": "function",
        "function": {
            "name": "remember_fact",
            "arguments": json.dumps({"fact": f"{CANARY} likes tea."}),
        },
    }
    deployment.llm.answers = [
        Answer({"content": "", "tool_calls": [call]}),
        Answer({"content": f"{CANARY} is remembered."}),
    ]
    with tenant.client() as client:
        client.headers.update({**headers, "tracestate": f"vendor={CANARY}", "X-Canary": CANARY})
        changed = client.patch(
            f"/api/v1/agents/{tenant.agent_id}/",
            json={"tools": ["remember_fact"], "system_prompt": f"Say {CANARY}."},
        )
        assert changed.status_code == 200, changed.text
        body = {
            "agent": "ada", "user_id": f"{CANARY}@example.com", "name": CANARY,
            "thread_id": CANARY, "content": f"Remember {CANARY}.", "metadata": {CANARY: CANARY},
        }  # fmt: skip
        sent = client.post(
            "/api/v1/messages/?wait=60", json=body, headers={"X-Request-ID": CANARY}
        ).json()
        assert sent.get("status") == "awaiting_consent", sent
        (tool_call,) = sent["waits_for"]["tool_calls"]
        decided = client.post(
            f"/api/v1/tool-calls/{tool_call['id']}/decision/", json={"approve": True}
        )
        assert decided.status_code == 200, decided.text
        tenant.wait_for(sent["id"])
        client.get("/api/v1/messages/", params={"user_id": f"{CANARY}@example.com"})
        client.get(f"/api/v1/messages/?{CANARY}={CANARY}")
        assert client.get(f"/api/v1/{CANARY}/").status_code == 404
        assert client.request("CANARY", "/api/v1/messages/").status_code == 405
        client.post("/api/v1/messages/", json={"agent": CANARY, "user_id": CANARY})
        deployment.llm.answers = [Answer(f"{CANARY} is refused", 400)]
        client.post("/api/v1/messages/?wait=30", json={**body, "thread_id": f"{CANARY}2"})

    def is_complete(spans: list[Seen]) -> bool:
        has_method = any(span.name.startswith("_OTHER") for span in spans)
        return has("tool")(spans) and has_method and any(span.is_error for span in spans)

    spans = collector.wait_for(trace_id, is_complete)
    (tool,) = named(spans, "tool")
    assert tool.attributes["gen_ai.tool.name"] == "remember_fact"
    assert CANARY.encode() not in b"".join(collector.bytes)
    assert b"CANARY" not in b"".join(collector.bytes)
    assert b"maria" not in b"".join(collector.bytes)
    assert tenant.key.encode() not in b"".join(collector.bytes)


def test_an_extraction_is_in_the_trace_of_the_message(
    deployment: Deployment, collector: Collector
) -> None:
    tenant = deployment.tenants[0]
    with tenant.client() as client:
        settings = {"extracts_facts": True, "extraction_idle_seconds": 0}
        changed = client.patch(f"/api/v1/agents/{tenant.agent_id}/", json=settings)
        assert changed.status_code == 200, changed.text
        trace_id, headers = new_trace()
        tenant.wait_for(send(tenant, headers, user_id="theo", thread_id="facts"))
        spans = collector.wait_for(
            trace_id,
            lambda spans: has("job extraction")(spans) and len(named(spans, "model")) > 1,
        )
        client.patch(f"/api/v1/agents/{tenant.agent_id}/", json={"extracts_facts": False})
    extractions = {span.id for span in named(spans, "job extraction")}
    parents = {
        span.id for name in ("POST /api/v1/messages/", "job reply") for span in named(spans, name)
    }
    assert {span.parent for span in named(spans, "job extraction")} <= parents
    assert any(span.parent in extractions for span in named(spans, "model"))


def test_two_tenants_with_the_same_ids_have_separate_traces(
    deployment: Deployment, collector: Collector
) -> None:
    messages = [send(tenant, new_trace()[1], thread_id="same") for tenant in deployment.tenants[:2]]
    for tenant, message_id in zip(deployment.tenants[:2], messages, strict=True):
        tenant.wait_for(message_id)

    def replies() -> list[Seen]:
        return [
            span
            for message_id in messages
            for span in named(collector.spans, "job reply")
            if span.attributes["konstruct.job.key"] == message_id
        ]

    eventually(lambda: len(replies()) == len(messages), "the spans have not come")
    traces = [collector.trace(span.trace_id) for span in replies()]
    for tenant, trace in zip(deployment.tenants[:2], traces, strict=True):
        tenants = {span.attributes["konstruct.tenant.id"] for span in trace}
        assert tenants == {str(tenant.id)}
    assert len({span.trace_id for trace in traces for span in trace}) == 2


@pytest.mark.parametrize(
    "headers",
    [
        {"traceparent": "00-" + "0" * 32 + "-" + "c" * 16 + "-01"},
        {"traceparent": "00-" + "g" * 32 + "-" + "c" * 16 + "-01"},
        {"traceparent": "ff-" + "a" * 32 + "-" + "c" * 16 + "-01"},
        {"traceparent": "00-" + "a" * 32 + "-" + "c" * 16 + "-01-" + "x" * 30_000},
        {"traceparent": "x" * 100_000},
        {"traceparent": "\xe9" * 55, "tracestate": "a=" + "\xe9" * 500},
        {"traceparent": "00-" + "b" * 32 + "-" + "c" * 16 + "-ff", "tracestate": "=,;=" * 1000},
    ],
)
def test_a_hostile_header_is_no_error(
    deployment: Deployment, collector: Collector, headers: dict[str, str]
) -> None:
    tenant = deployment.tenants[0]
    with tenant.client() as client:
        raw = {name: value.encode("latin-1") for name, value in headers.items()}
        answer = client.get("/api/v1/agents/", headers=raw)  # type: ignore[arg-type]
    assert answer.status_code == 200
    assert not collector.trace("0" * 32) + collector.trace("a" * 32)


@pytest.mark.data
def test_unavailable_collector_delays_no_request(
    deployment: Deployment, collector: Collector
) -> None:
    tenant = deployment.tenants[0]
    try:
        collector.status = 500
        tenant.wait_for(tenant.send("Hello", thread_id="refused"))
        collector.status = 200
        collector.hangs.set()
        for number in range(3):
            tenant.wait_for(tenant.send("Hello", thread_id=f"hanging {number}"))
        deployment.worker.process.terminate()  # ends within its grace period, and is restarted
        deployment.worker.process.wait(10)
        tenant.wait_for(tenant.send("Hello", thread_id="after"))
    finally:
        collector.status = 200
        collector.hangs.clear()
