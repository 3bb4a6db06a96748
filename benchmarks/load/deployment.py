"""A deployment under load. Postgres, Valkey and each process can be stopped separately."""

import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
from cryptography.fernet import Fernet

from tests.end_to_end.deployment import Deployment, Supervised, eventually
from tests.servers.llm import Answer, Request, streamed
from tests.servers.nginx import Nginx, free_ports
from tests.servers.slack import SlackServer
from tests.survival.llm import TOKEN, EchoServer
from tests.survival.outages import BEAT, CELERY, Store

GUNICORN = ["-m", "gunicorn", "--config", "deploy/gunicorn.conf.py"]
ALL_QUEUES = ("replies", "deliveries", "embeddings", "extractions", "sweeps")
THREE_WORKERS = (("replies",), ("embeddings", "extractions"), ("deliveries", "sweeps"))
A_WORKER_EACH = (("replies",), ("deliveries",), ("embeddings", "extractions"), ("sweeps",))
# The model is busy for every hundredth message, in all tries of the first attempt.
BUSY_EVERY = 100
TRIES = 3
UNLIMITED = dict.fromkeys(("RATE_LIMIT_BURST", "RATE_LIMIT_PER_SECOND"), "1000000000")


@dataclass(frozen=True)
class Layout:
    """The number of processes of each kind."""

    name: str
    webs: int = 1
    """gunicorns, each at a port."""
    web_processes: int = 1
    """Processes of each gunicorn."""
    workers: Sequence[Sequence[str]] = (ALL_QUEUES,)
    """The queues of each worker process."""
    proxy: bool = False
    """nginx with deploy/nginx.conf is in front, with TLS."""
    settings: Mapping[str, str] = field(default_factory=lambda: UNLIMITED)


class SlowEcho(EchoServer):
    """Answers with the token of the question, after some seconds; as a stream if requested.

    Sometimes it is busy.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self._refused = Counter[str]()

    def reply_to(self, request: Request) -> Answer:
        answer = super().reply_to(request)
        found = TOKEN.search(request.question)
        if found and int(found[3]) % BUSY_EVERY == 0 and self._refused[found[0]] < TRIES:
            self._refused[found[0]] += 1
            return Answer("busy", 503)
        if answer.status == 200 and request.body.get("stream"):
            pieces = ("Heard ", found[0] if found else "nothing", ".")
            usage = {"prompt_tokens": 500, "completion_tokens": 5, "total_tokens": 505}
            answer = replace(
                streamed(*pieces, usage=usage), wait=answer.wait, drip=self.seconds / 5
            )
        return replace(answer, delay=0.0 if answer.events else self.seconds)


class LoadDeployment(Deployment):
    """Long-running servers, and the processes of a layout."""

    def __init__(self, home: Path, llm: SlowEcho, slugs: Sequence[str], **settings: str) -> None:
        self.workspaces = SlackServer()
        super().__init__(home, llm, slugs, self.workspaces)
        self.echo = llm
        self.main = Store("postgres", "postgres", home / "main")
        self.valkey = Store("valkey", "valkey-server", home / "cache")
        self.database_url = self.main.url("app")
        self.redis_url = self.valkey.url("cache")
        self.metrics_port = free_ports(1)[0]
        self.processes: dict[str, Supervised] = {}
        """Of the layout that runs, by name."""
        self.ports: dict[str, int] = {}
        """Of its web processes, by the same names."""
        self.environment |= {
            "DATABASE_URL": self.main.url("app"),
            "REDIS_URL": self.redis_url,
            "CELERY_BROKER_URL": self.valkey.url("broker"),
            "SECRET_KEY": secrets.token_hex(32),
            "CHANNEL_TOKEN_KEYS": Fernet.generate_key().decode(),
            "ALLOWED_HOSTS": ".localhost,localhost,127.0.0.1",
            "PUBLIC_HOSTS": "localhost,127.0.0.1",
            "LLM_POOL_URL": f"{llm.url}/v1",
            "LLM_API": "openai",
            "LLM_MODEL": "echo",
            "LOG_LEVEL": "WARNING",
            "METRICS_DIR": str(home / "metrics"),
            **settings,
        }
        self.owner = {"DATABASE_OWNER_URL": self.main.url("owner")}

    @contextmanager
    def running(self) -> Iterator["LoadDeployment"]:
        """Start the servers, and create the tenants. Remove everything afterwards."""
        with ExitStack() as stack:
            for store in (self.main, self.valkey):
                stack.callback(store.kill)
                store.start()
            stack.enter_context(self.workspaces)
            self._run("manage.py", "migrate", **self.owner, PLAIN_HTTP="true")
            self.add_tenants(*self._slugs)
            yield self

    @contextmanager
    def serving(self, layout: Layout) -> Iterator["LoadDeployment"]:
        """Run the processes of a layout."""
        self.scheme = "https" if layout.proxy else "http"
        behind = {"BEHIND_TLS_PROXY": "true", "TRUSTED_PROXIES": "1"}
        environment = {
            **layout.settings,
            **(behind if layout.proxy else {"PLAIN_HTTP": "true"}),
        }
        ports, self.ports = free_ports(layout.webs), {}
        commands: dict[str, tuple[list[str], dict[str, str]]] = {}
        for number, port in enumerate(ports):
            name = "web" if layout.webs == 1 else f"web {number + 1}"
            processes = ["--workers", str(layout.web_processes)]
            commands[name] = [*GUNICORN, *processes], {"PORT": str(port)}
            self.ports[name] = port
        for queues in layout.workers:
            # The worker of sweeps exports the counts of all processes.
            metrics = {"METRICS_ADDRESS": f"127.0.0.1:{self.metrics_port}"}
            commands[queues[0] if len(layout.workers) > 1 else "worker"] = (
                ["manage.py", "worker", *queues],
                metrics if "sweeps" in queues else {},
            )
        commands["beat"] = [*CELERY, *BEAT], {}
        commands["owner"] = (
            ["manage.py", "owner_worker"],
            {"KONSTRUCT_DB_ROLE": "owner", **self.owner},
        )
        with ExitStack() as stack:
            self.processes = {
                name: self._supervised(stack, name, command, **environment, **own)
                for name, (command, own) in commands.items()
            }
            self.port = ports[0]
            if layout.proxy:
                folder = self.home / "nginx"
                folder.mkdir(exist_ok=True)
                proxy = Nginx(folder, ports)
                stack.enter_context(proxy.running())
                self.port = proxy.https
            self.url = f"{self.scheme}://127.0.0.1:{self.port}"
            eventually(lambda: all(map(is_ready, ports)), "the web is not ready")
            yield self

    def _run(self, *arguments: str, role: str = "", **environment: str) -> str:
        variables = {"PLAIN_HTTP": "true", **(self.owner if role else {}), **environment}
        return super()._run(*arguments, role=role, **variables)


def is_ready(port: int) -> bool:
    """Return whether a web process is ready, including all workers."""
    try:
        answer: Any = httpx.get(f"http://127.0.0.1:{port}/health/ready", timeout=10)
        return bool(answer.json()["status"] == "ok")
    except httpx.TransportError:
        return False
