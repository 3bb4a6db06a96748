"""A complete deployment in its own home: real web, worker and beat processes, several tenants."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psutil
import psycopg
import redis

from konstruct.local import services
from konstruct.processes import bound_to_this_process
from tenants.redis_keys import memory_short_key
from tests.servers.llm import LLMServer
from tests.servers.slack import SIGNING_SECRET, SlackServer

PROJECT = Path(__file__).resolve().parents[2]
# Seconds until a missing condition is a failure.
PATIENCE = 120
SLUGS = ["oak", "elm", "ash"]


def eventually(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Wait until the condition is true; fail otherwise."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"after {seconds} seconds: {what}"
        time.sleep(0.1)


class Supervised:
    """A process that is restarted when it dies, as a supervisor does."""

    def __init__(
        self, command: list[str], environment: dict[str, str], log: Path, checkout: Path = PROJECT
    ) -> None:
        self._checkout = checkout
        self._command = [sys.executable, *command]
        self._environment = environment
        self._log = log
        self.statuses: list[int] = []
        """Those with which it ended before it was started again."""
        self._stopping = threading.Event()
        self._supervise()

    def _supervise(self) -> None:
        """Start it, and start it again whenever it ends."""
        self.process = self._start()
        self._stopping.clear()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _start(self) -> "subprocess.Popen[bytes]":
        with self._log.open("ab") as log:
            return subprocess.Popen(
                self._command,
                cwd=self._checkout,
                env=self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=bound_to_this_process(signal.SIGTERM),
            )

    def _watch(self) -> None:
        while not self._stopping.is_set():
            if (status := self.process.poll()) is not None:
                self.statuses.append(status)
                self.process = self._start()
            time.sleep(0.1)

    def children(self) -> list[psutil.Process]:
        """Return the child processes."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill(self) -> None:
        """Kill it with its children, as when the machine fails."""
        os.killpg(self.process.pid, signal.SIGKILL)

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Kill it, and restart it after the block."""
        self._stopping.set()
        self._thread.join()
        self.kill()
        self.statuses.append(self.process.wait())
        try:
            yield
        finally:
            self._supervise()

    def replace(self, checkout: Path) -> None:
        """Stop it, and start it from another checkout."""
        self.stop()
        self._checkout = checkout
        self._supervise()

    def stop(self) -> None:
        """Stop it permanently."""
        self._stopping.set()
        self._thread.join()
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            self.process.wait()


class Tenant:
    """A tenant with its API clients and its rows."""

    def __init__(self, deployment: "Deployment", row: dict[str, str]) -> None:
        self.deployment = deployment
        self.slug = row["slug"]
        self.id = UUID(row["id"])
        self.agent_id = UUID(row["agent_id"])
        self.key = row["key"]
        self.eraser = row["eraser"]

    def client(self, host: str = "localhost") -> httpx.Client:
        """Return a client with the tenant's key, at the neutral host or the tenant's own."""
        headers = {"Authorization": f"Bearer {self.key}", "Host": f"{host}:{self.deployment.port}"}
        return httpx.Client(base_url=self.deployment.url, headers=headers, timeout=90)

    def send(self, content: str, **fields: Any) -> str:
        """Send a message of maria. Return its id."""
        body = {"agent": "ada", "user_id": "maria", "content": content, **fields}
        with self.client() as client:
            response = client.post("/api/v1/messages/", json=body)
        assert response.status_code == 202, response.text
        return str(response.json()["id"])

    def wait_for(self, message_id: str, seconds: float = PATIENCE) -> dict[str, Any]:
        """Wait for the reply. Return the message; fail if it has no reply."""
        deadline = time.monotonic() + seconds
        document: dict[str, Any] = {}
        with self.client() as client:
            while True:
                with contextlib.suppress(httpx.TransportError):
                    response = client.get(f"/api/v1/messages/{message_id}/?wait=5")
                    if response.status_code == 200:
                        document = response.json()
                        if document["status"] != "queued":
                            assert document["status"] == "answered", document
                            return document
                assert time.monotonic() < deadline, f"not answered: {document or message_id}"

    def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query inside the tenant, as the application's role."""
        options = (
            f"-c search_path=t_{self.id.hex},extensions,public -c app.current_tenant={self.id}"
        )
        with psycopg.connect(self.deployment.database_url, options=options) as connection:
            return connection.execute(sql, parameters).fetchall()

    def window(self, user_id: str = "maria") -> list[str]:
        """Return the ids of the messages in the window, oldest first."""
        key = memory_short_key(self.id, self.agent_id, user_id)
        with contextlib.closing(redis.from_url(self.deployment.redis_url)) as cache:
            return [json.loads(entry)["message_id"] for entry in cache.lrange(key, 0, -1)]

    def is_settled(self) -> bool:
        """Return whether no job is waiting."""
        return self.rows(
            "SELECT (SELECT count(*) FROM orchestrator_pendingreply)"
            " + (SELECT count(*) FROM memory_pendingembedding)"
        ) == [(0,)]

    def assert_whole(self, *, users: tuple[str, ...] = ("maria",)) -> None:
        """Check that every message has one reply, one pair in the window, and its embeddings."""
        eventually(self.is_settled, f"{self.slug} still has something waiting")
        pairs = self.rows(
            "SELECT asked.id::text, reply.id::text, asked.user_id FROM memory_message asked"
            " JOIN memory_message reply ON reply.in_reply_to_id = asked.id"
            " ORDER BY reply.created_at, reply.number"
        )
        messages = self.rows("SELECT count(*) FROM memory_message WHERE role = 'user'")
        assert messages == [(len(pairs),)]
        assert len({first for first, _, _ in pairs}) == len(pairs)
        for user_id in users:
            turns = [turn for *pair, owner in pairs if owner == user_id for turn in pair]
            assert self.window(user_id) == turns[-20:]
        not_embedded = self.rows(
            "SELECT message.content FROM memory_message message LEFT JOIN"
            " memory_conversationembedding piece ON piece.message_id = message.id"
            " WHERE piece.id IS NULL"
        )
        assert not_embedded == []


class Deployment:
    """Postgres, Valkey, web, worker and beat, with the test's language model server."""

    def __init__(
        self,
        home: Path,
        llm: LLMServer,
        slugs: Sequence[str] = SLUGS,
        slack: SlackServer | None = None,
    ) -> None:
        self.home = home
        # The code of its processes and commands.
        self.checkout = PROJECT
        self.llm = llm
        self.slack = slack
        self.tenants: list[Tenant] = []
        self.workers: list[Supervised] = []
        self._slugs = slugs
        self.orders = home / "orders"
        self.orders.mkdir(parents=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        with home_of(home):
            self.database_url = services.database_url("app")
            self.redis_url = services.redis_url()
        variables = ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "CELERY_BROKER_URL")
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in variables},
            "KONSTRUCT_HOME": str(home),
            "DJANGO_SETTINGS_MODULE": "konstruct.settings",
            "LLM_POOL_URL": llm.url,
            "PORT": str(self.port),
            "PYTHONUNBUFFERED": "1",
            "C_FORCE_ROOT": "1",
        }
        if slack is not None:
            self.environment |= {"SLACK_API_URL": slack.url, "SLACK_SIGNING_SECRET": SIGNING_SECRET}

    @contextlib.contextmanager
    def running(self) -> Iterator["Deployment"]:
        """Start everything. Remove everything afterwards."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._run, "-m", "konstruct.local.embedded", "stop")
            self._run("manage.py", "migrate")
            self.add_tenants(*self._slugs)
            self.web = self._supervised(
                stack, "web", ["-m", "gunicorn", "--config", "deploy/gunicorn.conf.py"]
            )
            self._start_workers(stack)
            self.beat = self._supervised(
                stack,
                "beat",
                ["-m", "celery", "--quiet", "--app", "konstruct", "beat", "--pidfile=",
                 "--loglevel", "WARNING"],
            )  # fmt: skip
            eventually(self._is_ready, "the web is not ready")
            yield self

    def _start_workers(self, stack: contextlib.ExitStack) -> None:
        self.worker = self._supervised(
            stack, "worker", ["-m", "tests.end_to_end.worker", str(self.orders)]
        )
        self.workers = [self.worker]

    def _supervised(
        self, stack: contextlib.ExitStack, name: str, command: list[str], **environment: str
    ) -> Supervised:
        process = Supervised(
            command, {**self.environment, **environment}, self.home / f"{name}.log", self.checkout
        )
        stack.callback(process.stop)
        return process

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health/ready").is_success
        except httpx.TransportError:
            return False

    def add_tenants(self, *slugs: str) -> None:
        """Create tenants, each with an agent, a key and an admin: SLUG or SLUG@SERVER."""
        rows = self._run("-m", "tests.end_to_end.prepare", *slugs, role="owner")
        self.tenants += [Tenant(self, row) for row in json.loads(rows)]

    def manage(self, *arguments: str, **environment: str) -> str:
        """Run a command of manage.py. Return its output."""
        return self._run("manage.py", *arguments, **environment)

    def _run(self, *arguments: str, role: str = "", **environment: str) -> str:
        ran = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.checkout,
            env={
                **self.environment,
                **({"KONSTRUCT_DB_ROLE": role} if role else {}),
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def order_deaths(self, points: list[str]) -> None:
        """Make the next process that reaches each point kill itself there."""
        for point in points:
            (self.orders / point).touch()

    def open_orders(self) -> list[str]:
        """Return the points at which no process has died yet."""
        return sorted(path.name for path in self.orders.iterdir() if path.suffix != ".obeyed")

    def lose_cache_and_broker(self) -> None:
        """Empty every database of Valkey."""
        with contextlib.closing(redis.from_url(self.redis_url)) as cache:
            cache.flushall()


@contextlib.contextmanager
def home_of(home: Path) -> Iterator[None]:
    """Compute paths for another home."""
    before = os.environ.get("KONSTRUCT_HOME")
    os.environ["KONSTRUCT_HOME"] = str(home)
    try:
        yield
    finally:
        if before is None:
            del os.environ["KONSTRUCT_HOME"]
        else:
            os.environ["KONSTRUCT_HOME"] = before
