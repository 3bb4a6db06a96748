"""Measure the delay of a reply beyond the time of its model, with many concurrent messages.

    python -m benchmarks.serving.waiting [crowd] [in-flight] [fair]
        [--conversations 200] [--in-flight 1000] [--others 1000] [--takes 5 15] [--json FILE]

`manage.py serve` runs in a temporary home, with the language model of waiting_model.py. Half of the
clients read the reply as a stream, the others ask for it by `GET …?wait=60`; a tenth talk with an
agent that calls a tool first.

crowd: conversations of five tenants at once. fair: one tenant sends messages in as many threads;
when they are accepted, another tenant sends one message, and after each reply the next one. in-
flight: messages of eight tenants; the model answers none before all have arrived. The processes are
measured meanwhile.

The seconds are those from the response that accepts a message until the reply is read, minus the
requested time of the model. The clients, the model and the server share the machine. The delay of
the model itself (`model late`) shows when the machine was overloaded.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import re
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from benchmarks.serving import waiting_model
from benchmarks.serving.rest import LIMITS
from benchmarks.serving.waiting_model import Model
from benchmarks.tools.throwaway import PROJECT, set_up

SCENARIOS = ("crowd", "fair", "in-flight")
TENANTS = {"crowd": 5, "fair": 2, "in-flight": 8}
MAX_SECONDS = 300.0
"""Of a scenario."""
ACCEPTED_AT_ONCE = 64
# A tenant gets half of the free slots: eight tenants together get eight ninths of this.
SLOTS = 1.25
# Unix sockets with the inodes of both ends, and the processes.
SOCKETS = ("ss", "-xpnH")
# A process has the first of these names that is in its command line.
KINDS = {
    "gunicorn": "web",
    "worker replies": "replies",
    "worker deliveries": "deliveries",
    "worker embeddings": "embeddings",
    "worker sweeps": "sweeps",
    "owner_worker": "owner",
    " beat ": "beat",
    " worker ": "worker",
}


def main() -> None:
    """Run the scenarios, each with its own server."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenarios", nargs="*", choices=[*SCENARIOS, []], default=[])
    parser.add_argument("--conversations", type=int, default=200, help="of the crowd")
    parser.add_argument("--in-flight", type=int, default=1000, help="messages at once")
    parser.add_argument("--others", type=int, default=1000, help="messages of the busy tenant")
    parser.add_argument("--takes", type=float, nargs=2, default=(5.0, 15.0), help="model seconds")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    measured = {}
    for name in options.scenarios or SCENARIOS:
        limits = {}
        if name == "in-flight":
            slots = str(int(SLOTS * options.in_flight))
            limits = {"REPLY_CONCURRENCY": slots, "LLM_MAX_CONCURRENT": slots}
            limits["LLM_TIMEOUT"] = "180"
        before = os.getloadavg()[0]
        with (
            waiting_model.serving() as model,
            deployment(model.url, TENANTS[name], limits) as served,
        ):
            run: dict[str, Callable[..., Any]] = {
                "crowd": crowd, "fair": fair, "in-flight": in_flight
            }  # fmt: skip
            figures = asyncio.run(run[name](served, model, options))
            figures["load"] = [round(before, 1), round(os.getloadavg()[0], 1)]
            figures["model late s"] = round(model.latest.value, 2)
        measured[name] = figures
        show(name, figures)
    if options.json:
        options.json.write_text(json.dumps(measured, indent=2) + "\n")


# --- Scenarios ------------------------------------------------------------------------------------


async def crowd(served: "Deployment", model: Model, options: argparse.Namespace) -> dict[str, Any]:
    """Start all conversations at once."""
    conversations = drawn(served.keys, options.conversations, options.takes)
    before = served.cpu_seconds()
    answers = await asyncio.gather(
        *(conversation.hold(served.port) for conversation in conversations)
    )
    cpu = {name: now - before.get(name, 0.0) for name, now in served.cpu_seconds().items()}
    pairs = list(zip(answers, conversations, strict=True))
    return {
        "seconds beyond the model's": distribution(answers),
        "of them streamed": distribution([a for a, conversation in pairs if conversation.streams]),
        "with a tool call": distribution([a for a, conversation in pairs if conversation.calls]),
        "CPU ms per reply": {name: 1000 * s / len(answers) for name, s in sorted(cpu.items())},
    }


async def fair(served: "Deployment", model: Model, options: argparse.Namespace) -> dict[str, Any]:
    """Measure messages of another tenant beside those of a busy one."""
    busy, quiet = served.keys
    others = [Conversation(busy, f"user-{n}", conversation) for n, conversation in enumerate(
        takes(options.others, options.takes)
    )]  # fmt: skip
    at_once = asyncio.Semaphore(ACCEPTED_AT_ONCE)

    async def send(conversation: Conversation) -> None:
        async with at_once:
            await conversation.send(served.port)

    alone = await Conversation(quiet, "before", 5.0).hold(served.port)
    sending = asyncio.gather(*(send(conversation) for conversation in others))
    await sending
    answers, streamed, with_model = [], [], []
    for number in range(3):
        with_model.append(float(model.open.value))
        answers.append(await Conversation(quiet, f"quiet-{number}", 5.0).hold(served.port))
        streaming = Conversation(quiet, f"streamed-{number}", 5.0, streams=True)
        streamed.append(await streaming.hold(served.port))
    return {
        "before the busy tenant": distribution([alone]),
        f"beside {len(others)} of another": distribution(answers),
        "streamed": distribution(streamed),
        "with the model before each": {f"try {n}": times for n, times in enumerate(with_model, 1)},
    }


async def in_flight(
    served: "Deployment", model: Model, options: argparse.Namespace
) -> dict[str, Any]:
    """Measure the processes while the given number of messages wait for the model."""
    conversations = drawn(served.keys, options.in_flight, options.takes)
    rest, before = served.pss(), served.cpu_seconds()
    model.hold.value = options.in_flight
    holding = asyncio.gather(*(conversation.hold(served.port) for conversation in conversations))
    begun, most = time.monotonic(), 0
    while model.hold.value and time.monotonic() - begun < MAX_SECONDS / 2 and not holding.done():
        most = max(most, model.open.value)
        if model.open.value >= options.in_flight - 1:
            break
        await asyncio.sleep(0.05)
    reached = time.monotonic() - begun
    held, connections, threads = served.pss(), served.connections(), served.threads()
    model.hold.value = 0
    answers = await holding
    cpu = {name: now - before.get(name, 0.0) for name, now in served.cpu_seconds().items()}
    return {
        "with the model at once": {"requests": max(most, model.open.value), "after s": reached},
        "PSS MB at rest": rest,
        "PSS MB": held,
        "threads": threads,
        "connections": connections,
        "CPU ms per reply": {name: 1000 * s / len(answers) for name, s in sorted(cpu.items())},
        "answered": {"replies": sum(answer is not None for answer in answers)},
    }


# --- Conversations --------------------------------------------------------------------------------


class Conversation:
    """One message of a new user, and its reply."""

    def __init__(
        self, key: str, user: str, seconds: float, *, streams: bool = False, calls: bool = False
    ) -> None:
        self._key, self._user = key, user
        self._seconds = seconds
        self.streams, self.calls = streams, calls

    async def hold(self, port: int) -> float | None:
        """Return the seconds from acceptance to the reply minus the model's; None if too late."""
        async with asyncio.timeout(MAX_SECONDS):
            message_id, accepted, is_answered = await self.send(port)
            if not is_answered:
                path = f"/api/v1/messages/{message_id}/?wait=60"
                while (await self._ask(port, "GET", path))["status"] == "queued":
                    pass
            return time.monotonic() - accepted - self._seconds

    async def send(self, port: int) -> tuple[str, float, bool]:
        """Send the message. Return its id, the time of acceptance, and whether it is answered."""
        text = f"What takes {self._seconds:.2f} s?"
        agent = "caller" if self.calls else "ada"
        body = {"agent": agent, "user_id": self._user, "thread_id": "one", "content": text}
        if not self.streams:
            document = await self._ask(port, "POST", "/api/v1/messages/", body)
            return document["id"], time.monotonic(), False
        reader, writer = await self._open(port, "POST", "/api/v1/messages/", body)
        message_id, accepted, name = "", 0.0, ""
        while line := (await reader.readline()).decode():
            if line.startswith("event: "):
                name = line.split()[1]
            elif line.startswith("data: ") and name == "accepted":
                message_id, accepted = json.loads(line[6:])["id"], time.monotonic()
            elif line.startswith("data: ") and name in ("message", "error"):
                break
        writer.close()
        is_answered = name == "message" and json.loads(line[6:])["status"] == "answered"
        return message_id, accepted, is_answered

    async def _ask(self, port: int, method: str, path: str, body: Any = None) -> Any:
        reader, writer = await self._open(port, method, path, body)
        document = await reader.read()
        writer.close()
        return json.loads(document)

    async def _open(
        self, port: int, method: str, path: str, body: Any = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        content = b"" if body is None else json.dumps(body).encode()
        accept = "text/event-stream" if self.streams and method == "POST" else "application/json"
        writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._key}\r\n"
            f"Accept: {accept}\r\nContent-Type: application/json\r\nConnection: close\r\n"
            f"Content-Length: {len(content)}\r\n\r\n".encode()
            + content
        )
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.split()[1] in (b"200", b"202"), head + await reader.read()
        return reader, writer


def drawn(keys: Sequence[str], count: int, between: Sequence[float]) -> list[Conversation]:
    """Return conversations of all tenants, half of them streamed, a tenth with a tool."""
    generator = random.Random(1)
    return [
        Conversation(
            keys[number % len(keys)], f"user-{number}", seconds,
            streams=number // len(keys) % 2 == 0, calls=generator.random() < 0.1,
        )
        for number, seconds in enumerate(takes(count, between))
    ]  # fmt: skip


def takes(count: int, between: Sequence[float]) -> Iterator[float]:
    """Yield the duration of the model for each of the given number of messages."""
    generator = random.Random(0)
    return (round(generator.uniform(*between), 2) for _ in range(count))


# --- The server -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Deployment:
    """A running `manage.py serve`, and a key for each of its tenants."""

    home: Path
    port: int
    process: psutil.Process
    keys: Sequence[str]

    def processes(self) -> Iterator[tuple[str, psutil.Process]]:
        """Yield each process with its name."""
        for process in self.process.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                command = " ".join(process.cmdline()) + " "
                kind = next((kind for word, kind in KINDS.items() if word in command), "")
                if kind and "konstruct.processes" not in command:
                    yield kind, process
        for process in psutil.process_iter(["name", "cwd"]):
            if process.info["name"] in ("postgres", "valkey-server") and str(
                process.info["cwd"]
            ).startswith(str(self.home)):
                yield process.info["name"], process

    def pss(self) -> dict[str, float]:
        """Return the MB of memory of each kind of process, shared pages divided."""
        return self._sums(lambda process: process.memory_full_info().pss / 2**20)

    def threads(self) -> dict[str, float]:
        """Return the number of threads of each kind of process."""
        return self._sums(lambda process: process.num_threads())

    def cpu_seconds(self) -> dict[str, float]:
        """Return the CPU time of each kind of process. Processes that ended are not counted."""
        return self._sums(lambda process: sum(process.cpu_times()[:2]))

    def connections(self) -> dict[str, float]:
        """Return the number of connections to Postgres of each kind of process, by `ss`."""
        ran = subprocess.run(SOCKETS, capture_output=True, text=True, check=True)
        servers, clients = set(), {}
        for line in ran.stdout.splitlines():
            path, inode, _, peer = line.split()[4:8]
            if ".s.PGSQL." in path:
                servers.add(inode)
            elif found := re.search(r"pid=(\d+)", line):
                clients[peer] = int(found[1])
        kinds = {process.pid: kind for kind, process in self.processes()}
        count = Counter(kinds.get(clients.get(inode, 0), "") for inode in servers)
        return {kind: float(number) for kind, number in sorted(count.items()) if kind}

    def _sums(self, measure: Callable[[psutil.Process], float]) -> dict[str, float]:
        sums: Counter[str] = Counter()
        for kind, process in self.processes():
            with suppress(psutil.NoSuchProcess):
                sums[kind] += measure(process)  # type: ignore[assignment]
        return dict(sums)


@contextmanager
def deployment(model_url: str, tenants: int, limits: dict[str, str]) -> Iterator[Deployment]:
    """Run `manage.py serve` in a temporary home, with the given number of tenants."""
    with tempfile.TemporaryDirectory(prefix="konstruct-waiting-") as home:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        variables = {"DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "CELERY_BROKER_URL"}
        others = {name: value for name, value in os.environ.items() if name not in variables}
        environment = {
            **others, **LIMITS, **limits, "KONSTRUCT_HOME": home, "LLM_POOL_URL": model_url,
            "LLM_API": "openai", "LLM_MODEL": "benchmark", "LOG_LEVEL": "WARNING",
        }  # fmt: skip
        process = psutil.Popen(
            [sys.executable, "manage.py", "serve", "--port", str(port)],
            cwd=PROJECT,
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        try:
            wait_ready(port, process)
            os.environ |= {**environment, "KONSTRUCT_DB_ROLE": "owner"}
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                keys = pool.submit(create_tenants, tenants).result()
            del os.environ["KONSTRUCT_DB_ROLE"]
            asyncio.run(warm_up(port, keys))
            yield Deployment(Path(home).resolve(), port, process, keys)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(90)


def wait_ready(port: int, process: psutil.Popen) -> None:
    """Return when the web process answers."""
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        with suppress(httpx.TransportError):
            if httpx.get(f"http://127.0.0.1:{port}/health/ready", timeout=5).is_success:
                return
        if process.poll() is not None:
            sys.exit("manage.py serve has ended; its errors are above")
        time.sleep(0.2)
    sys.exit("manage.py serve is not ready after three minutes")


def create_tenants(count: int) -> list[str]:
    """Create tenants with two agents, one of which has a tool. Return a key of each."""
    set_up()
    from konstruct.api.auth.keys import issue_key
    from konstruct.orchestrator.agents import create_agent
    from tenants.schemas.provisioning import create_tenant

    keys = []
    for number in range(count):
        tenant = create_tenant(slug=f"tenant-{number}")
        create_agent(tenant_id=tenant.id, name="ada", system_prompt="You are Ada.")
        create_agent(tenant_id=tenant.id, name="caller", tools=["remember_fact"])
        keys.append(str(issue_key(tenant_id=tenant.id, name="benchmark")[1]))
    return keys


async def warm_up(port: int, keys: Sequence[str]) -> None:
    """Make each process load its models and imports."""
    for key in drawn(keys, 10 * len(keys), (0.1, 0.3)):
        await key.hold(port)


# --- Figures --------------------------------------------------------------------------------------


def distribution(seconds: Sequence[float | None]) -> dict[str, float]:
    """Return the median, high percentiles and the maximum."""
    found = sorted(time for time in seconds if time is not None)
    if not found:
        return {"n": 0}
    p95 = found[min(len(found) - 1, int(0.95 * len(found)))]
    return {"n": len(found), "p50": statistics.median(found), "p95": p95, "max": found[-1]}


def show(name: str, figures: dict[str, Any]) -> None:
    """Print a line for each figure."""
    print(f"\n{name}")
    for what, figure in figures.items():
        if isinstance(figure, dict):
            figure = "  ".join(
                f"{key} {value:.2f}".removesuffix(".00") for key, value in figure.items()
            )
        print(f"  {what:30} {figure}", flush=True)


if __name__ == "__main__":
    main()
