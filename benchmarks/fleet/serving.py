"""Measure the cost of serving with many tenants and with few (used by by_the_hundred.py).

A web process of one thread, a worker, beat and the owner worker run twice: on a database of ten
tenants and on one of many. Each connection of the second one serves all of its tenants before the
measurement. Both are timed in turns. The language model answers immediately.
"""

import contextlib
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg

from benchmarks.serving.rest import LIMITS
from benchmarks.tools.throwaway import PROJECT
from konstruct.local import services
from tests.konstruct.api.live import running, serving
from tests.servers.llm import Answer, LLMServer

FEW = 10
# Database name, environment of its processes, and an API key of each tenant by slug.
Database = tuple[str, Mapping[str, str], dict[str, str]]
IDLE_SECONDS = 60
SETTLE_SECONDS = 10
BEAT = [
    "celery",
    "--app",
    "konstruct",
    "beat",
    "--pidfile=",
]
OWNER_WORKER = ["django", "owner_worker"]
# Creates an agent and a key for each active tenant, and prints the keys by slug.
KEYS = """
import json
import django
django.setup()
from konstruct.api.auth.keys import issue_key
from konstruct.orchestrator.agents import create_agent, find_agent
from konstruct.orchestrator.exceptions import AgentNotFound
from tenants.context import tenant_scope
from tenants.models import Tenant
keys = {}
for tenant in Tenant.objects.serving():
    try:
        with tenant_scope(tenant.id):
            find_agent("ada")
    except AgentNotFound:
        create_agent(tenant_id=tenant.id, name="ada", system_prompt="You are Ada.")
    keys[tenant.slug] = str(issue_key(tenant_id=tenant.id, name="benchmark")[1])
print(json.dumps(keys))
"""


@dataclass
class Served:
    """A deployment on one database."""

    database: str
    url: str
    keys: dict[str, str]
    web: psutil.Process
    worker: psutil.Process

    def call(self, key: str, method: str, path: str, body: Any = None) -> Any:
        """Send a request on the open connection."""
        answer = self.client.request(
            method, path, json=body, headers={"Authorization": f"Bearer {key}"}
        )
        answer.raise_for_status()
        return answer.json()

    def __post_init__(self) -> None:
        self.client = httpx.Client(base_url=self.url, timeout=60)
        self.numbers = itertools.count()

    def message_in(self, key: str) -> Any:
        number = next(self.numbers)
        body = {"agent": "ada", "user_id": "maria", "content": f"I have {number} red bicycles."}
        return self.call(key, "POST", "/api/v1/messages/", body)

    def reply_out(self, key: str, message: Any) -> None:
        answered = self.call(key, "GET", f"/api/v1/messages/{message['id']}/?wait=30")
        if not answered["reply"]:
            sys.exit(f"no reply within 30 s: {answered}")

    def recall(self, key: str) -> None:
        body = {"agent": "ada", "user_id": "maria", "query": "Who has a bicycle?"}
        self.call(key, "POST", "/api/v1/memories/search/", body)

    def memory(self) -> str:
        """Return the private MB of the processes, and of the largest backend of each role."""
        found = {"web": _private(self.web), "worker": _private(self.worker)}
        with psycopg.connect(services.database_url("owner"), autocommit=True) as owner:
            backends = owner.execute(
                "SELECT pid, usename FROM pg_stat_activity WHERE datname = %s", [self.database]
            ).fetchall()
        roles: dict[str, list[float]] = defaultdict(list)
        for pid, role in backends:
            with contextlib.suppress(psutil.NoSuchProcess):
                roles[role].append(psutil.Process(pid).memory_full_info().uss / 1e6)
        largest = {f"backend of {role}": max(sizes) for role, sizes in roles.items()}
        return ", ".join(f"{what} {size:.0f} MB" for what, size in {**found, **largest}.items())


def keys_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an API key of each tenant of a database by slug."""
    ran = subprocess.run(
        [sys.executable, "-c", KEYS],
        env={**environment, "KONSTRUCT_DB_ROLE": "app"},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        sys.exit(ran.stderr)
    keys: dict[str, str] = json.loads(ran.stdout.splitlines()[-1])
    return keys


@contextlib.contextmanager
def deployment(database: Database, llm: LLMServer, folder: Path, broker: int) -> Iterator[Served]:
    """Run all processes on a database."""
    name, environment, keys = database
    variables = {
        **environment,
        **LIMITS,
        "KONSTRUCT_DB_ROLE": "app",
        "LLM_POOL_URL": llm.url,
        "CELERY_BROKER_URL": services.broker_url(broker),
        "WEB_THREADS": "1",
    }
    log = folder / f"{name}.log"
    with contextlib.ExitStack() as opened:
        opened.enter_context(running(BEAT, variables, log))
        opened.enter_context(
            running(OWNER_WORKER, {**variables, "KONSTRUCT_DB_ROLE": "owner"}, log)
        )
        before = set(psutil.Process().children())
        url = opened.enter_context(serving(variables, log, worker=True))
        web, worker = sorted(
            set(psutil.Process().children()) - before, key=lambda process: process.pid
        )
        yield Served(name, url, keys, web.children()[0], worker)


def compare_serving(databases: Sequence[Database], folder: Path, rounds: int) -> None:
    """Print the costs of serving on both databases: few tenants, and many."""
    with LLMServer() as llm, contextlib.ExitStack() as opened:
        llm.default = Answer({"content": "Noted."})
        few, many = (
            opened.enter_context(deployment(database, llm, folder, 4 + number))
            for number, database in enumerate(databases)
        )
        print_idle(few, many)
        for served in (few, many):
            began = time.perf_counter()
            for key in served.keys.values():
                served.reply_out(key, served.message_in(key))
                served.recall(key)
            print(f"  {len(served.keys)} tenants served in {time.perf_counter() - began:.0f} s")
        print_times(few, many, rounds)
        for served in (few, many):
            print(f"  memory, {len(served.keys)} tenants: {served.memory()}", flush=True)


def print_idle(*deployments: Served) -> None:
    """Print the transactions a minute of all idle processes together."""
    for served in deployments:
        _settle(served.database)
    counted = [_transactions(served.database) for served in deployments]
    time.sleep(IDLE_SECONDS)
    for served, before in zip(deployments, counted, strict=True):
        done = (_transactions(served.database) - before) * 60 / IDLE_SECONDS
        print(f"  idle, {len(served.keys)} tenants: {done:.0f} transactions a minute", flush=True)


def print_times(few: Served, many: Served, rounds: int) -> None:
    """Print the median of each step in turns: few tenants, as many of the many, any of the many."""
    chance = random.Random(1)
    some = list(many.keys.values())[:FEW]
    turns: dict[str, Callable[[], tuple[Served, str]]] = {
        "few": lambda: (few, chance.choice(list(few.keys.values()))),
        "some of many": lambda: (many, chance.choice(some)),
        "any of many": lambda: (many, chance.choice(list(many.keys.values()))),
    }
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(rounds):
        for turn, choose in turns.items():
            served, key = choose()
            marks = [time.perf_counter()]
            message = served.message_in(key)
            marks.append(time.perf_counter())
            served.reply_out(key, message)
            marks.append(time.perf_counter())
            served.recall(key)
            marks.append(time.perf_counter())
            steps = zip(
                ("message in", "reply out", "recall"), itertools.pairwise(marks), strict=True
            )
            for step, (began, ended) in steps:
                times[step, turn].append(ended - began)
    for step in ("message in", "reply out", "recall"):
        p50 = {turn: statistics.median(times[step, turn]) for turn in turns}
        print(
            f"  {step}: p50 {p50['few'] * 1000:.1f} ms with {len(few.keys)} tenants,"
            f" {p50['some of many'] / p50['few']:.2f} times that for as many of {len(many.keys)},"
            f" {p50['any of many'] / p50['few']:.2f} for any of them",
            flush=True,
        )


def _settle(database: str) -> None:
    """Wait until processes have checked each tenant for work of earlier versions."""
    rate, before = sys.maxsize, _transactions(database)
    while True:
        time.sleep(SETTLE_SECONDS)
        now = _transactions(database)
        rate, last, before = now - before, rate, now
        if rate > 0.9 * last:
            return


def _transactions(database: str) -> int:
    with psycopg.connect(services.database_url("owner"), autocommit=True) as owner:
        found = owner.execute(
            "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = %s",
            [database],
        ).fetchone()
    assert found is not None
    return int(found[0])


def _private(process: psutil.Process) -> float:
    return float(process.memory_full_info().uss / 1e6)


def answers(keys: Mapping[str, str], log: Path) -> tuple[float, dict[str, int]]:
    """Time the first ready answer of a fresh web process, and request each tenant.

    Returns the seconds of the first request, and the status of one request of each tenant.
    """
    variables = {**os.environ, **LIMITS, "KONSTRUCT_DB_ROLE": "app"}
    with serving(variables, log) as url, httpx.Client(base_url=url, timeout=60) as client:
        began = time.perf_counter()
        client.get("/health/ready").raise_for_status()
        ready = time.perf_counter() - began
        return ready, {
            slug: client.get(
                "/api/v1/messages/?limit=1", headers={"Authorization": f"Bearer {key}"}
            ).status_code
            for slug, key in keys.items()
        }


def environment_of(database: str, **changes: str) -> dict[str, str]:
    """Return the environment of processes on a database."""
    urls = {
        "DATABASE_URL": services.database_url("app", database),
        "DATABASE_OWNER_URL": services.database_url("owner", database),
    }
    return {**os.environ, **urls, **changes}
