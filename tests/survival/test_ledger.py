"""Web and workers are killed during calls of a model: the meter equals its server's count."""

import contextlib
import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from random import Random

import httpx
import pytest

from tests.end_to_end.deployment import Tenant, eventually
from tests.servers.llm import Answer, LLMServer, Request, streamed
from tests.survival.faults import REPLIES_WORKERS
from tests.survival.harness import Processes

pytestmark = pytest.mark.data

SENDERS = 4
KILLS = 6
SECONDS_BETWEEN_KILLS = 2.0
ANSWER_SECONDS = 1.0
COMPLETION_TOKENS = 7
# The limit of tokens that a tenant reaches while processes are killed.
TOKEN_LIMIT = 30_000
MAX_TOKENS_OF_A_CALL = 2_000
# Extraction calls that run at once, in addition to those of the senders.
EXTRACTIONS_AT_ONCE = 4
OUTCOMES = ("done", "failed")


class CountingServer(LLMServer):
    """Answers each request with a unique number of tokens, which identifies the call."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: list[int] = []
        self.streams = 0

    def reply_to(self, request: Request) -> Answer:
        self.requests.clear()
        self.counted.append(1_000 + len(self.counted))
        usage = {"prompt_tokens": self.counted[-1], "completion_tokens": COMPLETION_TOKENS}
        text = json.dumps({"facts": []})  # for extractions; a reply like others
        if request.body.get("stream"):
            self.streams += 1
            return replace(streamed(text[:4], text[4:], usage=usage), delay=ANSWER_SECONDS)
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return Answer({"choices": [choice], "usage": usage}, delay=ANSWER_SECONDS)


class Extracting(Processes):
    """A deployment with a worker of extractions, whose model server streams."""

    def __init__(self, home: Path, llm: LLMServer) -> None:
        super().__init__(home, llm, ["oak"])
        self.environment["LLM_POOL_URL"] = f"{llm.url}/v1"

    def _start_workers(self, stack: contextlib.ExitStack) -> None:
        super()._start_workers(stack)
        command = ["manage.py", "worker", "extractions"]
        self.workers.append(self._supervised(stack, "extractions", command))


class Sender(threading.Thread):
    """Sends one message after the other, in turns with a plain and a streamed reply."""

    def __init__(self, tenant: Tenant, number: int, stopping: threading.Event) -> None:
        super().__init__(daemon=True)
        self.tenant, self.number, self._stopping = tenant, number, stopping
        self.accepted: set[str] = set()
        self.refused = 0

    def run(self) -> None:
        with self.tenant.client() as http:
            number = 0
            # Ends: with the test.
            while not self._stopping.is_set():
                number += 1
                with contextlib.suppress(httpx.TransportError):
                    self._send(http, number)
                time.sleep(0.1)

    def _send(self, http: httpx.Client, number: int) -> None:
        user = f"user-{self.number}"
        thread = f"{user} {number // 3}"  # facts of the earlier threads are extracted
        body = {"agent": "ada", "user_id": user, "thread_id": thread, "content": f"I say {number}."}
        headers = {"Idempotency-Key": f"{user}-{number}"}
        if number % 2:
            headers["Accept"] = "text/event-stream"
        with http.stream("POST", "/api/v1/messages/?wait=10", json=body, headers=headers) as answer:
            text = "".join(answer.iter_text())
        if answer.status_code in (402, 429) and "quota-exceeded" in text:
            self.refused += 1
            self._stopping.wait(0.5)
        elif answer.status_code in (200, 202):
            self.accepted.add(headers["Idempotency-Key"])


def test_model_calls_equal_the_count_of_the_model_server(tmp_path: Path) -> None:
    random, stopping = Random(20261124), threading.Event()
    with CountingServer() as llm, Extracting(tmp_path / "home", llm).running() as here:
        (tenant,) = here.tenants
        tenant.rows(
            "UPDATE orchestrator_agent SET extracts_facts = true, extraction_idle_seconds = 1"
            " RETURNING 1"
        )
        here.manage("quota", "--tenant", "oak", "--set", "tokens", "--hard", str(TOKEN_LIMIT))
        # Before the senders use up the limit of tokens.
        tenant.send("I say 0.", user_id="first")
        extractions = (
            "SELECT FROM orchestrator_modelcall WHERE purpose = 'extraction' AND outcome = 'done'"
        )
        eventually(lambda: tenant.rows(extractions), "no facts are extracted")
        answered = len(llm.counted)
        senders = [Sender(tenant, number, stopping) for number in range(SENDERS)]
        for sender in senders:
            sender.start()
        eventually(lambda: len(llm.counted) > answered, "the model is not called")
        for worker in here.workers[:REPLIES_WORKERS]:
            worker.kill()  # one of them waits for the answer
        for _ in range(KILLS):
            time.sleep(random.uniform(0.5, SECONDS_BETWEEN_KILLS))
            random.choice([here.web, *here.workers, *here.workers]).kill()
        eventually(lambda: all(sender.refused for sender in senders), "no request is refused")
        stopping.set()
        for sender in senders:
            sender.join(60)
        eventually(
            lambda: (
                tenant.rows("SELECT count(*) FROM tenants_job WHERE leased_until > now()") == [(0,)]
                and tenant.rows("SELECT count(*) FROM orchestrator_pendingreply") == [(0,)]
            ),
            "something is still being done",
        )
        counted, streams = list(llm.counted), llm.streams
        calls = tenant.rows(
            "SELECT purpose, outcome, prompt_tokens, completion_tokens FROM orchestrator_modelcall"
        )
        summed = tenant.rows(
            "SELECT sum(calls)::int, sum(prompt_tokens)::int, sum(completion_tokens)::int,"
            " sum(messages)::int FROM orchestrator_dailyusage"
        )
    known = [call for call in calls if call[1] in OUTCOMES]
    done = [prompt_tokens for _, outcome, prompt_tokens, _ in calls if outcome == "done"]
    unknown = len(calls) - len(known)
    assert {purpose for purpose, *_ in calls} == {"reply", "extraction"}
    assert streams
    # Each answer is in the meter once, or belongs to a call without an outcome.
    assert len(set(done)) == len(done)
    assert set(done) <= set(counted)
    assert len(counted) - len(done) <= len(calls) - len(done)
    assert unknown
    prompt_tokens, completion_tokens = (sum(call[index] for call in known) for index in (2, 3))
    accepted = {key for sender in senders for key in sender.accepted}
    assert summed[0][:3] == (len(known), prompt_tokens, completion_tokens)
    assert prompt_tokens == sum(done)
    assert summed[0][3] >= len(accepted)
    used = prompt_tokens + completion_tokens
    at_once = SENDERS + EXTRACTIONS_AT_ONCE
    assert TOKEN_LIMIT <= used <= TOKEN_LIMIT + at_once * MAX_TOKENS_OF_A_CALL
