"""The web process behind PgBouncer: calls of several tenants at once, on three sessions."""

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import httpx
import psycopg
import pytest

from tenants.context import connection
from tenants.models import Tenant
from tests import database
from tests.konstruct.api.live import serving
from tests.konstruct.conftest import MESSAGES, Program
from tests.servers import pooler

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(
        pooler.EXECUTABLE is None and not os.environ.get("CI"), reason="there is no pgbouncer"
    ),
]

API = "/api/v1/"
CONCURRENT_CALLS = 8
UNLIMITED = dict.fromkeys(("RATE_LIMIT_BURST", "RATE_LIMIT_PER_SECOND"), "200000")
KINDS = (
    *("send", "send", "sent", "theirs", "messages", "agents", "fact", "facts", "search"),
    "conversations",
)


@dataclass
class Caller:
    """A tenant's program, with a word that only its users write."""

    program: Program
    word: str
    sent: list[str] = field(default_factory=list)


@dataclass
class Outcome:
    """The outcome of all calls: statuses, and wrong answers."""

    statuses: Counter[int] = field(default_factory=Counter)
    crossed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def call(
    client: httpx.Client, caller: Caller, other: Caller, random: Random, seen: Outcome
) -> None:
    """Send a random request of a program, and check the answer."""
    about = {"agent": "ada", "user_id": "maria"}
    text = f"My {caller.word} is number {random.randrange(1000)}."
    kind = random.choice(KINDS)
    is_own = kind in ("sent", "messages", "agents") and bool(caller.sent)
    expected = {200}
    match kind:
        case "send" | "fact":
            path, expected = (MESSAGES, {202}) if kind == "send" else (f"{API}facts/", {200, 201})
            answer = client.post(path, json={**about, "content": text})
        case "sent" if caller.sent:
            answer = client.get(f"{MESSAGES}{random.choice(caller.sent)}/")
        case "theirs" if other.sent:
            answer = client.get(f"{MESSAGES}{random.choice(other.sent)}/")
            expected = {404}
        case "search":
            answer = client.post(f"{API}memories/search/", json={**about, "query": text})
        case "facts":
            answer = client.get(f"{API}facts/", params=about)
        case "conversations" | "agents":
            answer = client.get(f"{API}{kind}/")
        case _:
            answer = client.get(MESSAGES)
    seen.statuses[answer.status_code] += 1
    summary = f"{kind} of {caller.word}: {answer.status_code} {answer.text[:500]}"
    foreign = (other.word, str(other.program.tenant.id), str(other.program.agent.id))
    if any(mark in answer.text for mark in foreign):
        seen.crossed.append(summary)
    elif answer.status_code >= 500:
        return
    elif answer.status_code not in expected:
        seen.wrong.append(summary)
    elif kind == "send":
        caller.sent.append(answer.json()["id"])
    elif (
        is_own
        and caller.word not in answer.text
        and str(caller.program.agent.id) not in (answer.text)
    ):
        seen.wrong.append(summary)


def call_at_random(url: str, callers: list[Caller], calls: int, seed: int) -> Outcome:
    """Call for all tenants, one after the other."""
    random, seen = Random(seed), Outcome()
    with httpx.Client(base_url=url, timeout=60) as client:
        for _ in range(calls):
            caller, other = random.sample(callers, 2)
            client.headers["Authorization"] = f"Bearer {caller.program.key}"
            call(client, caller, other, random, seen)
    return seen


@contextmanager
def killing(every: float) -> Iterator[None]:
    """Terminate a session of the application now and then during the block."""
    done = threading.Event()

    def kill() -> None:
        with psycopg.connect(database.url_of("superuser"), autocommit=True) as superuser:
            while not done.wait(every):
                superuser.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename ="
                    " 'konstruct_app' AND datname = current_database() ORDER BY random() LIMIT 1"
                )

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        done.set()
        killer.join()


def called(
    environment: dict[str, str], log: Path, callers: list[Caller], calls: int, *, kill: float = 0
) -> Outcome:
    """Serve behind a pooler of three sessions, and call."""
    name = connection.settings_dict["NAME"]
    with (
        pooler.pooler(size=3) as url,
        serving({**environment, **UNLIMITED, "DATABASE_URL": f"{url}/{name}"}, log) as web,
        ThreadPoolExecutor(CONCURRENT_CALLS) as threads,
    ):
        calls_per_thread = calls // CONCURRENT_CALLS
        with killing(kill) if kill else threading.Lock():
            outcomes = list(
                threads.map(
                    lambda seed: call_at_random(web, callers, calls_per_thread, seed),
                    range(CONCURRENT_CALLS),
                )
            )
    found = Outcome()
    for outcome in outcomes:
        found.statuses += outcome.statuses
        found.crossed += outcome.crossed
        found.wrong += outcome.wrong
    # Shown with -s, or if the test fails.
    print(f"{calls} calls of {len(callers)} tenants: {dict(found.statuses)}")  # noqa: T201
    return found


@pytest.fixture(
    params=[(3, 320), pytest.param((8, 4000), marks=pytest.mark.long)],
    ids=["three tenants", "eight tenants"],
)
def callers(
    request: pytest.FixtureRequest,
    tenant_a: Tenant,
    tenant_b: Tenant,
    make_tenant: database.MakeTenant,
    make_program: Callable[[Tenant], Program],
) -> tuple[list[Caller], int]:
    """Return programs of the given number of tenants, and the number of calls."""
    number, calls = request.param
    tenants = [tenant_a, tenant_b, *(make_tenant() for _ in range(number - 2))]
    return [
        Caller(make_program(tenant), f"zz{n}word{n}") for n, tenant in enumerate(tenants)
    ], calls


@pytest.mark.django_db(transaction=True)
def test_no_answer_is_wrong(
    process_environment: dict[str, str], tmp_path: Path, callers: tuple[list[Caller], int]
) -> None:
    found = called(process_environment, tmp_path / "web.log", *callers)
    assert (found.crossed, found.wrong) == ([], [])
    assert set(found.statuses) <= {200, 201, 202, 404}


@pytest.mark.django_db(transaction=True)
def test_killed_sessions_fail_calls_and_cross_none(
    process_environment: dict[str, str], tmp_path: Path, callers: tuple[list[Caller], int]
) -> None:
    found = called(process_environment, tmp_path / "web.log", *callers, kill=1)
    assert (found.crossed, found.wrong) == ([], [])
    assert found.statuses[200] > found.statuses[500] + found.statuses[503]
