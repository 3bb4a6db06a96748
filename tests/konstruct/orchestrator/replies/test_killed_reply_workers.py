"""Workers that are repeatedly killed over a reply: it is given up, without duplicates.

Each attempt is a process that is killed with SIGKILL at a step of the reply.
"""

import json
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from django.db.models import F
from django.db.models.functions import Now

from konstruct.channels import delivery as deliveries, inbox
from konstruct.channels.models import Arrival, Delivery
from konstruct.orchestrator import replies
from konstruct.orchestrator.models import PendingReply
from memory.conversations import short_term
from memory.models import Message, PendingEmbedding
from tenants.context import tenant_scope
from tenants.jobs import JobKind, WorkerLost
from tests.jobs import expire_leases
from tests.konstruct.conftest import MESSAGES, Program
from tests.konstruct.running import PROJECT, eventually
from tests.servers.llm import Answer, LLMServer

pytestmark = pytest.mark.django_db(transaction=True)

# Reads lines with a step to die at; forks a worker for each, and reports its end.
WORKERS = """
    import importlib, json, os, signal, sys
    import django
    django.setup()
    from django.db import connections
    from konstruct.channels import inbox
    from konstruct.channels.delivery import DELIVERIES
    from konstruct.orchestrator import pipeline
    from konstruct.orchestrator import replies
    from memory.embedding.embedder import load_before_fork
    from tenants.context import tenant_scope
    from tenants.tasks import work

    def ending(function, when, how):
        def wrapped(*args, **options):
            about = " ".join(map(str, (*args, *options.values())))
            if "DEADLY" in about:
                if when == "after":
                    function(*args, **options)
                if how == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                os._exit(int(how))
            return function(*args, **options)
        return wrapped

    def run(job):
        if job["module"]:
            module = importlib.import_module(job["module"])
            function = getattr(module, job["name"])
            setattr(module, job["name"], ending(function, job["when"], job["how"]))
        if job["run"] == "reply":
            pipeline.handle(tenant_id=job["tenant"], message_id=job["id"])
        elif job["run"] == "delivery":
            work("delivery")
        else:
            inbox.HANDLERS["slack"] = ending(inbox.HANDLERS["slack"], "before", "kill")
            work("arrival")

    load_before_fork()
    object.__setattr__(replies.REPLIES, "first_backoff", 600.0)  # longer than a test
    for kind in (replies.REPLIES, DELIVERIES, inbox.ARRIVALS):
        object.__setattr__(kind, "max_attempts", 3)
    connections.close_all()
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            from uuid import UUID
            job = json.loads(line)
            if job["run"] != "arrivals":
                job["tenant"] = UUID(job["tenant"])
                job["id"] = UUID(job["id"])
            try:
                run(job)
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(99)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
"""


@pytest.fixture(scope="module")
def workers(environment_of_processes: dict[str, str]) -> Iterator[Callable[..., int]]:
    environment = {**environment_of_processes, "LLM_POOL_URL": ""}
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WORKERS)],
        cwd=PROJECT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def work(**job: Any) -> int:
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        yield work
        process.stdin.close()


def pass_time(kind: JobKind) -> None:
    """Make the jobs that wait for their next attempt due."""
    kind.jobs().waiting().update(due_at=F("created_at"), sweep_at=Now())


EVENT = {
    "kind": "mention", "workspace": "T1", "channel": "C1", "user": "U1", "home": "T1",
    "ts": "1.1", "at": "2026-01-01T00:00:00+00:00", "thread_ts": "1.1",
    "text": "", "name": "", "files": [],
}  # fmt: skip
ORCHESTRATOR = "konstruct.orchestrator."
STEPS = [
    ("pipeline.respond", "gather_context", "before"),
    ("runner", "run_agent", "after"),
    ("pipeline.respond", "append_to_window", "after"),
    ("pipeline.respond", "finish", "before"),
]


@pytest.mark.data
@pytest.mark.parametrize(("module", "name", "when"), STEPS)
def test_message_that_kills_its_workers_fails(
    program_a: Program, workers: Callable[..., int], module: str, name: str, when: str
) -> None:
    how = "kill" if name != "run_agent" else "137"
    deadly, next_one = (
        program_a.send(content, thread_id="t").json()["id"]
        for content in ("My DEADLY secret.", "My sister lives in Lisbon.")
    )
    job = {
        "run": "reply", "tenant": str(program_a.tenant.id), "id": deadly,
        "module": ORCHESTRATOR + module, "name": name, "when": when, "how": how,
    }  # fmt: skip
    ended = []
    for attempt in range(1, 4):
        ended.append(workers(**job))
        with tenant_scope(program_a.tenant.id):
            assert expire_leases() == 1
            row = PendingReply.objects.get(pk=deadly)
            assert (row.attempts, row.failed_at) == (attempt, None)
            if attempt == 2:
                # Killed twice, it waits for its next attempt; its thread continues.
                assert workers(**job) == 0
                assert not PendingReply.objects.filter(pk=next_one).exists()
                row.refresh_from_db()
                assert (row.attempts, row.begun_at) == (2, None)
            pass_time(replies.REPLIES)
    assert set(ended) == {-signal.SIGKILL if how == "kill" else int(how)}
    assert workers(**job) == 0  # it is given up before its next attempt
    message = program_a.get(f"{MESSAGES}{deadly}/").json()
    assert (message["status"], message["reply"]) == ("failed", None)
    assert message["error"] == {
        "code": WorkerLost.code,
        "detail": "The worker was killed, or lost its connection, during the attempt.",
        "attempts": 3,
        "next_attempt_at": None,
    }
    assert program_a.get(f"{MESSAGES}{next_one}/").json()["status"] == "answered"
    with tenant_scope(program_a.tenant.id):
        assert Message.objects.filter(in_reply_to=next_one).count() == 1
        assert Message.objects.filter(in_reply_to=deadly).count() <= 1
        # After the cause is removed, it is answered once like any other.
        replies.retry(UUID(deadly))
    assert workers(**{**job, "module": ""}) == 0
    with tenant_scope(program_a.tenant.id):
        assert Message.objects.filter(in_reply_to=deadly).count() == 1
        assert not PendingReply.objects.exists()
        assert PendingEmbedding.objects.count() == 4
    window = short_term.get_recent_messages(program_a.tenant.id, program_a.agent.id, "maria")
    contents = [turn["content"] for turn in window if turn["role"] == "user"]
    assert sorted(contents) == ["My DEADLY secret.", "My sister lives in Lisbon."]


@pytest.mark.parametrize(
    ("module", "name", "when"),
    [("runner", "run_agent", "before"), ("pipeline.respond", "record_reply", "after")],
)
def test_one_killed_worker_only_delays_the_message(
    program_a: Program, workers: Callable[..., int], module: str, name: str, when: str
) -> None:
    """The order of the thread is kept, and it is retried at once."""
    first, second = (
        program_a.send(content, thread_id="t").json()["id"] for content in ("A DEADLY day.", "Two.")
    )
    job = {
        "run": "reply", "tenant": str(program_a.tenant.id), "id": first,
        "module": ORCHESTRATOR + module,
        "name": name, "when": when, "how": "kill",
    }  # fmt: skip
    assert workers(**job) == -signal.SIGKILL
    with tenant_scope(program_a.tenant.id):
        assert expire_leases() == 1
    assert workers(**{**job, "module": "", "id": second}) == 0
    with tenant_scope(program_a.tenant.id):
        replies = Message.objects.filter(in_reply_to__isnull=False).order_by("number")
        assert [str(reply.in_reply_to_id) for reply in replies] == [first, second]


@pytest.mark.data
def test_delivery_that_kills_its_workers_fails(
    program_a: Program, workers: Callable[..., int]
) -> None:
    message_id = program_a.send("Hello").json()["id"]
    with tenant_scope(program_a.tenant.id):
        message = Message.objects.get(pk=message_id)
        deliveries.enqueue(message, channel="DEADLY", address={})
    job = {
        "run": "delivery", "tenant": str(program_a.tenant.id), "id": message_id,
        "module": "konstruct.channels.delivery", "name": "adapter_of", "when": "before",
        "how": "kill",
    }  # fmt: skip
    ended = kill_until_given_up(program_a, workers, job, deliveries.DELIVERIES)
    assert ended == [-signal.SIGKILL] * 3
    with tenant_scope(program_a.tenant.id):
        row = deliveries.DELIVERIES.jobs().get()
        assert (row.attempts, row.begun_at, Delivery.objects.get().posted) == (3, None, [])
        assert row.last_error.startswith("The worker was killed")


@pytest.mark.data
def test_inbox_entry_that_kills_its_workers_fails_and_blocks_no_other(
    program_a: Program, workers: Callable[..., int]
) -> None:
    with tenant_scope(program_a.tenant.id):
        for key, text in (("slack/1", "DEADLY"), ("slack/2", "Hello")):
            event = {**EVENT, "text": text}
            inbox.enqueue(channel="slack", workspace="T1", key=key, event=event)
    job = {
        "run": "arrivals", "tenant": str(program_a.tenant.id), "id": "T1",
        "module": "", "name": "", "when": "before", "how": "kill",
    }  # fmt: skip
    ended = kill_until_given_up(program_a, workers, job, inbox.ARRIVALS)
    assert ended == [-signal.SIGKILL] * 3
    with tenant_scope(program_a.tenant.id):
        assert Arrival.objects.get().key == "slack/1"  # the other one was processed
        row = inbox.ARRIVALS.jobs().get()
        assert (row.attempts, row.begun_at) == (3, None)
        assert row.last_error.startswith("The worker was killed")


def kill_until_given_up(
    program: Program, workers: Callable[..., int], job: dict[str, str], kind: JobKind
) -> list[int]:
    """Run workers until it is given up. Return the exit statuses of the killed ones."""
    ended = []
    for _ in range(10):
        ended.append(workers(**job))
        with tenant_scope(program.tenant.id):
            expire_leases()
            if kind.jobs().failed().exists():
                return [status for status in ended if status]
            pass_time(kind)
    raise AssertionError(f"it is not given up: {ended}")


@contextmanager
def worker_of_replies(environment: dict[str, str]) -> Iterator[None]:
    """Run a worker during the block. It ends in order."""
    command = [sys.executable, "manage.py", "worker", "replies"]
    with subprocess.Popen(command, cwd=PROJECT, env=environment) as worker:
        try:
            yield
            worker.terminate()
            assert worker.wait(60) == 0
        finally:
            worker.kill()


def reply_to(program: Program, message_id: str) -> str:
    """Wait for the reply to a message. Return its text."""
    path = f"{MESSAGES}{message_id}/"
    eventually(lambda: program.get(path).json()["status"] == "answered")
    return str(program.get(path).json()["reply"]["content"])


def test_worker_returns_its_attempts_on_sigterm(
    program_a: Program, environment_of_processes: dict[str, str], llm_server: LLMServer
) -> None:
    """It waits some seconds for the language model. Then another worker answers at once."""
    llm_server.default = Answer({"content": "late"}, wait=True)
    environment = {**environment_of_processes, "LLM_POOL_URL": llm_server.url}
    with worker_of_replies(environment):
        sent = [program_a.send(thread_id=thread).json()["id"] for thread in ("a", "b", "c")]
        llm_server.wait_for_requests(3, seconds=90)
        with tenant_scope(program_a.tenant.id):
            leased = replies.REPLIES.jobs().filter(leased_until__isnull=False)
            assert [job.attempts for job in leased] == [1] * 3
    with tenant_scope(program_a.tenant.id):
        for job in replies.REPLIES.jobs():
            assert (job.attempts, job.leased_until, job.last_error) == (0, None, "")
    llm_server.default = Answer({"content": "Noted."})
    with worker_of_replies(environment):
        for message_id in sent:
            assert reply_to(program_a, message_id) == "Noted."
    assert len(llm_server.requests) == 6


def test_tenant_with_many_messages_does_not_delay_another(
    program_a: Program,
    program_b: Program,
    environment_of_processes: dict[str, str],
    llm_server: LLMServer,
) -> None:
    """Twenty of tenant A wait for a model that does not answer. B's message still reaches it."""
    llm_server.default = Answer({"content": "late"}, wait=True)
    environment = {**environment_of_processes, "LLM_POOL_URL": llm_server.url}
    environment["REPLY_CONCURRENCY"] = "6"
    with worker_of_replies(environment):
        sent = [program_a.send(thread_id=f"t{n}").json()["id"] for n in range(20)]
        llm_server.wait_for_requests(3, seconds=90)
        last = program_b.send("B's only message.").json()["id"]
        llm_server.wait_for_requests(4)
        assert llm_server.requests[3].question == "B's only message."
        llm_server.release()
        for program, ids in ((program_b, [last]), (program_a, sent)):
            for message_id in ids:
                assert reply_to(program, message_id) == "late"
    assert len(llm_server.requests) == 21
