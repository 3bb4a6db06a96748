"""Leases of real worker processes: stopped, killed and ended workers, and a hundred replies."""

import itertools
import json
import os
import re
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from tests.end_to_end.deployment import PATIENCE, Deployment, Supervised, Tenant, eventually
from tests.servers.llm import Answer, Request, streamed
from tests.servers.slack import mention, signed, slack_server
from tests.survival.llm import TOKEN, EchoServer

pytestmark = pytest.mark.data

WORKER = ["manage.py", "worker", "replies", "deliveries", "embeddings", "extractions", "sweeps"]
FACT = "Maria likes tea."
AGENT_ID = "ada00000-0000-4000-8000-000000000000"


class Model(EchoServer):
    """Speaks OpenAI's API: it streams, and calls a tool if the message asks for it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_for: Counter[str] = Counter()

    @property
    def url(self) -> str:
        return f"{super().url}/v1"

    def reply_to(self, request: Request) -> Answer:
        messages = request.body["messages"]
        question = next(message for message in reversed(messages) if message["role"] == "user")[
            "content"
        ]
        token = TOKEN.search(question)
        self.asked_for[token[0] if token else ""] += 1
        if "tools" in request.body and messages[-1]["role"] != "tool":
            function = {"name": "remember_fact", "arguments": json.dumps({"fact": FACT})}
            call = {"id": "call_1", "type": "function", "function": function}
            return _openai({"role": "assistant", "content": None, "tool_calls": [call]})
        tenants = {tenant for tenant, _, _ in TOKEN.findall(json.dumps(request.body))}
        if len(tenants) > 1:
            self.crossed.append(f"one prompt holds words of {sorted(tenants)}")
        text = f"Heard {token[0] if token else 'nothing'}."
        if request.body.get("stream"):
            return streamed("Heard ", text.removeprefix("Heard "), wait=self._stalled)
        return _openai({"role": "assistant", "content": text}, wait=self._stalled)


def _openai(message: dict[str, Any], *, wait: bool = False) -> Answer:
    return Answer({"choices": [{"message": message}]}, wait=wait)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    home = tmp_path_factory.mktemp("leases") / "home"
    with Model() as llm, slack_server() as slack:
        made = Deployment(home, llm, slack=slack)
        made.environment |= {"LLM_TIMEOUT": "100", "AGENT_ID": AGENT_ID}
        with made.running():
            yield made


@pytest.fixture
def model(deployment: Deployment) -> Model:
    assert isinstance(deployment.llm, Model)
    deployment.llm.asked_for.clear()
    return deployment.llm


@contextmanager
def another_worker(deployment: Deployment, name: str) -> Iterator[Supervised]:
    process = Supervised(WORKER, deployment.environment, deployment.home / f"{name}.log")
    try:
        yield process
    finally:
        process.stop()


def wait_until_asked(model: Model, times: Mapping[str, int]) -> None:
    """Wait until the language model got the given number of requests for each message."""
    deadline = time.monotonic() + PATIENCE
    while any(model.asked_for[token] < count for token, count in times.items()):
        assert time.monotonic() < deadline, f"{times} became {model.asked_for}"
        time.sleep(0.1)


def replies(tenant: Tenant, like: str, *, sent_at_once: bool = False) -> list[str]:
    """Return the replies to such messages. Check that each matches, and each thread's order.

    Messages that were sent at once have no order.
    """
    rows = tenant.rows(
        "SELECT asked.content, reply.content, asked.thread_id, asked.number"
        " FROM memory_message AS reply"
        " JOIN memory_message AS asked ON asked.id = reply.in_reply_to_id"
        " WHERE asked.content LIKE %s ORDER BY reply.number",
        f"%{like}%",
    )
    by_thread: dict[str, list[int]] = defaultdict(list)
    for content, reply, thread_id, number in rows:
        (token,) = (match[0] for match in TOKEN.finditer(content))
        assert reply == f"Heard {token}."
        by_thread[thread_id].append(number)
    for thread_id, numbers in by_thread.items():
        assert sent_at_once or numbers == sorted(numbers), thread_id
    return [reply for _, reply, _, _ in rows]


def test_worker_paused_beyond_its_leases_writes_nothing_on_resume(
    deployment: Deployment, model: Model
) -> None:
    tenant, slack = deployment.tenants[0], deployment.slack
    assert slack is not None
    deployment.manage(
        "connect_slack", "--tenant", tenant.slug, "--agent", "ada", "--workspace", "T1",
        SLACK_BOT_TOKEN=slack.workspaces["T1"].token,
    )  # fmt: skip
    with tenant.client() as client:
        client.post("/api/v1/agents/", json={"name": "able", "tools": ["remember_fact"]})
        tool = client.post(
            "/api/v1/messages/?wait=60",
            json={"agent": "able", "user_id": "maria", "content": "Keep oak-stopped-1 in mind."},
        ).json()
        assert tool["status"] == "awaiting_consent", tool
        with model.stalled():
            (call,) = client.get("/api/v1/tool-calls/").json()["results"]
            decision = {"approve": True}
            decided = client.post(f"/api/v1/tool-calls/{call['id']}/decision/", json=decision)
            assert decided.is_success, decided.text
            plain = tenant.send("I say oak-stopped-2.", thread_id="stopped")
            body = json.dumps(mention("T1", "I say oak-stopped-3.", channel="C1")).encode()
            event = client.post("/channels/slack/events/", content=body, headers=signed(body))
            assert event.is_success, event.text
            requests = {"oak-stopped-1": 2, "oak-stopped-2": 1, "oak-stopped-3": 1}
            wait_until_asked(model, requests)
            group = os.getpgid(deployment.worker.process.pid)
            os.killpg(group, signal.SIGSTOP)
            try:
                with another_worker(deployment, "successor") as successor:
                    again = {"oak-stopped-1": 3, "oak-stopped-2": 2, "oak-stopped-3": 2}
                    wait_until_asked(model, again)
                    model.release()
                    for message_id in (tool["id"], plain):
                        tenant.wait_for(message_id)
                    slack.wait_for(
                        lambda: slack.posts("T1", "C1") == ["Heard oak-stopped-3."], seconds=60
                    )
                    eventually(tenant.is_settled, "something waits")
                    assert successor.statuses == []
            finally:
                os.killpg(group, signal.SIGCONT)
    log = deployment.home / "worker.log"
    lost = re.compile(r"The reply of \S+ is another worker's by now")
    eventually(lambda: len(lost.findall(log.read_text())) == 3, "nobody has lost a lease")
    # It continues as a new worker.
    later = tenant.send("I say oak-stopped-4.", thread_id="stopped")
    assert tenant.wait_for(later)["reply"]["content"] == "Heard oak-stopped-4."
    assert deployment.worker.statuses == []
    assert sorted(replies(tenant, "oak-stopped")) == [
        f"Heard oak-stopped-{number}." for number in range(1, 5)
    ]
    assert tenant.rows("SELECT content FROM memory_memoryentry") == [(FACT,)]
    assert tenant.rows("SELECT state FROM orchestrator_toolcall") == [("done",)]
    assert slack.posts("T1", "C1") == ["Heard oak-stopped-3."]


def log_of(deployment: Deployment, name: str) -> str:
    path = deployment.home / f"{name}.log"
    return path.read_text() if path.exists() else ""


def test_a_hundred_interleaved_replies_hold_no_word_of_another_tenant(
    deployment: Deployment, model: Model
) -> None:
    """All tenants have the same ids of agents, users and threads."""
    tenants, count = deployment.tenants, 34
    assert len({tenant.agent_id for tenant in tenants}) == 1
    with ExitStack() as opened:
        clients = [opened.enter_context(tenant.client()) for tenant in tenants]
        interleave(tenants, clients, model, count)
    assert model.crossed == []
    logs = "".join(log_of(deployment, name) for name in ("web", "worker", "beat"))
    tokens = {slug for slug, _, _ in TOKEN.findall(logs)}  # names of workers look like tokens
    assert tokens.isdisjoint(tenant.slug for tenant in tenants)
    for tenant in tenants:
        eventually(tenant.is_settled, "something waits")
        assert len(replies(tenant, f"{tenant.slug}-maria", sent_at_once=True)) == count
        assert {slug for slug, _, _ in TOKEN.findall(everything_of(tenant))} == {tenant.slug}


def interleave(
    tenants: list[Tenant], clients: list[httpx.Client], model: Model, count: int
) -> None:
    """Send the given number of messages of each tenant at once, and stream half of the replies."""

    def send(number: int, tenant: Tenant, client: httpx.Client) -> str:
        """Return the text of the stream, or of the reply."""
        token = f"{tenant.slug}-maria-{number}"
        body = {"agent": "ada", "user_id": "maria", "content": f"I say {token}."}
        body["thread_id"] = f"thread {number % 17}"
        if number % 2:
            message_id = client.post("/api/v1/messages/", json=body).json()["id"]
            tenant.wait_for(message_id)
            return token
        headers = {"Accept": "text/event-stream"}
        with client.stream("POST", "/api/v1/messages/", json=body, headers=headers) as response:
            stream = response.read().decode()
        assert set(TOKEN.findall(stream)) == {(tenant.slug, "maria", str(number))}, stream
        assert f'"text": "{token}."' in stream or f'"content": "Heard {token}."' in stream
        return token

    work = list(itertools.product(range(count), zip(tenants, clients, strict=True)))
    with ThreadPoolExecutor(len(work)) as threads:
        with model.stalled():
            sending = [threads.submit(send, number, *pair) for number, pair in work]
            # One message of each thread of each tenant is at the model; the others wait for it.
            eventually(lambda: model.asked_for.total() == 3 * 17, "the replies do not interleave")
        assert len({future.result() for future in sending}) == len(work)


def everything_of(tenant: Tenant) -> str:
    """Return all rows of the tenant's schema as text, including the traces of recall."""
    tables = tenant.rows(
        "SELECT table_name FROM information_schema.tables"
        " WHERE table_schema = %s AND table_type = 'BASE TABLE'",
        f"t_{tenant.id.hex}",
    )
    assert ("memory_message",) in tables
    texts: list[str] = []
    for (table,) in tables:
        texts += (text for (text,) in tenant.rows(f'SELECT each::text FROM "{table}" AS each'))
    return "\n".join(texts)
