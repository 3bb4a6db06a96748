"""Create tenants of different size with a history, run locust against them, compare the results."""

import itertools
import json
import math
import os
import random
import signal
import string
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.load.deployment import LoadDeployment
from tests.end_to_end.deployment import PROJECT, Tenant
from tests.survival.llm import TOKEN

BIG = ("bigoak", "bigelm")
SMALL = tuple(f"small{letter}" for letter in "abcdef")
SLUGS = (*BIG, *SMALL)
# Tenants with a Slack workspace, in which each of their users talks to the agent.
WORKSPACES = {slug: f"T{slug.upper()}" for slug in (BIG[0], SMALL[0])}
USERS_OF_BIG, USERS_OF_SMALL = 40, 4
# Token numbers of the first run. Those of imported messages are smaller.
FIRST_NUMBER = 1_000_000
STOP_SECONDS = 120
# Seconds without progress after which waiting for accepted messages fails.
SETTLE_SECONDS = 240
# Last events of a stream whose reply comes later and is counted at the end.
INTERRUPTIONS = tuple(
    f"urn:konstruct:problem:{kind}" for kind in ("reply-interrupted", "unavailable")
)
_runs = itertools.count(1)

TEXTS = (
    "I bought {n} kilos of pears at the market of {town}.",
    "My sister lives in {town}, and visits in week {n}.",
    "The train to {town} was {n} minutes late today.",
    "I have a meeting with Dr. Weber in {town} at {n} o'clock.",
    "We moved to {town}; the flat has {n} windows.",
)
TOWNS = ("Porto", "Bonn", "Ghent", "Turin", "Malmö", "Graz", "Lyon", "Cádiz")


@dataclass
class Run:
    """Measurements of one run of locust, and the outcomes of what it sent."""

    users: int
    seconds: float
    calls: dict[str, dict[str, float]]
    violations: dict[str, int]
    accepted: int
    answered: int
    erased: int
    resent: int
    loads: tuple[float, float]
    losses: Counter[str] = field(default_factory=Counter)
    """Lost, doubled, crossed, given up, not erased."""

    @property
    def requests(self) -> float:
        """Return the served requests a second."""
        return sum(call["count"] for name, call in self.served().items()) / self.seconds

    def served(self) -> dict[str, dict[str, float]]:
        """Return the calls that were neither refused nor failed."""
        return {n: c for n, c in self.calls.items() if not n.startswith(("refused", "broken"))}

    def count(self, name: str) -> int:
        """Return the number of calls with this name."""
        return int(self.calls.get(name, {}).get("count", 0))

    @property
    def is_clean(self) -> bool:
        """Return whether no message was lost, duplicated, misdirected or wrongly answered."""
        return not self.losses and not self.violations


def end_users() -> list[tuple[str, str]]:
    """Return tenants with their users, shuffled. Most of them belong to big tenants."""
    found = [(slug, name(n)) for slug in BIG for n in range(USERS_OF_BIG)]
    found += [(slug, name(n)) for slug in SMALL for n in range(USERS_OF_SMALL)]
    random.Random(1).shuffle(found)
    return found


def name(number: int) -> str:
    """Return a user id of letters only, as tokens need it."""
    return "u" + "".join(string.ascii_lowercase[digit] for digit in divmod(number, 26))


def prepare(deployment: LoadDeployment, messages: int) -> int:
    """Connect Slack workspaces, import histories, and wait until all is embedded.

    Args:
        messages: of each user of a big tenant; others have said less.

    Returns:
        How many messages there are.
    """
    for slug, workspace in WORKSPACES.items():
        users = {slack_id(user): user for tenant, user in end_users() if tenant == slug}
        made = deployment.workspaces.add(workspace, users=users)
        deployment.manage(
            "connect_slack", "--tenant", slug, "--agent", "ada", "--workspace", workspace,
            SLACK_BOT_TOKEN=made.token,
        )  # fmt: skip
    imported = _import_history(deployment, messages)
    settle(deployment.tenants)
    return imported


def slack_id(user: str) -> str:
    """Return the id of a user in Slack."""
    return f"U{user.upper()}"


def _import_history(deployment: LoadDeployment, messages: int) -> int:
    generator, imported = random.Random(2), 0
    for tenant in deployment.tenants:
        users = [user for slug, user in end_users() if slug == tenant.slug]
        turns_of_user = messages if tenant.slug in BIG else max(2, messages // 8)
        turns = [
            turn
            for user in users
            for turn in _conversation(tenant.slug, user, turns_of_user, generator)
        ]  # fmt: skip
        with tenant.client() as client:
            for start in range(0, len(turns), 500):
                body = {"agent": "ada", "messages": turns[start : start + 500]}
                answer = client.post("/api/v1/messages/import/", json=body)
                answer.raise_for_status()
                imported += answer.json()["created"]
    return imported


def _conversation(
    slug: str, user: str, count: int, generator: random.Random
) -> Iterator[dict[str, Any]]:
    said_at = datetime.now(UTC) - timedelta(days=90)
    for number in range(count):
        said_at += timedelta(hours=90 * 24 / count * generator.random())
        text = generator.choice(TEXTS).format(
            n=generator.randrange(60), town=generator.choice(TOWNS)
        )
        yield {
            "role": ("user", "assistant")[number % 2],
            "content": f"{text} ({slug}-{user}-{number})",
            "user_id": user,
            "thread_id": f"month {number // 20}",
            "created_at": said_at.isoformat(),
        }


@contextmanager
def traffic(
    deployment: LoadDeployment,
    *,
    users: int,
    seconds: float,
    erasures: float = 0.2,
    may_answer: Sequence[int] = (),
    until: threading.Event | None = None,
) -> Iterator[list[Run]]:
    """Run clients during the block. Then wait until all is done, and compare with the rows.

    The yielded list contains the run after the block.

    Args:
        users: clients at once.
        seconds: for how long they begin something new.
        erasures: how often a client erases itself, of the tasks of this kind.
        may_answer: statuses that are no violation; 0 is a connection that is lost.
        until: they begin nothing new once it is set.
    """
    number = next(_runs)
    plan_file, report_file = (deployment.home / f"{w}-{number}.json" for w in ("plan", "report"))
    port = deployment.url.rpartition(":")[2]
    plan = {
        "token": TOKEN.pattern,
        "tenants": {
            t.slug: {"key": t.key, "eraser": t.eraser, "workspace": WORKSPACES.get(t.slug)}
            for t in deployment.tenants
        },
        "users": end_users(),
        "first_number": FIRST_NUMBER * number,
        "report": str(report_file),
        "scheme": deployment.scheme,
        "host": f"localhost:{port}",
        "erasures": erasures,
        "may_answer": list(may_answer),
        "interruptions": INTERRUPTIONS,
    }
    plan_file.write_text(json.dumps(plan))
    locust = [
        sys.executable, "-m", "locust", "--locustfile", "benchmarks/load/users.py", "--headless",
        "--host", deployment.url, "--users", str(users), "--spawn-rate", str(max(1, users / 2)),
        "--run-time", f"{seconds:.0f}s", "--stop-timeout", str(STOP_SECONDS),
        "--loglevel", "WARNING", "--skip-log-setup", "--only-summary",
    ]  # fmt: skip
    before, done = os.getloadavg()[0], list[Run]()
    with (deployment.home / f"locust-{number}.log").open("wb") as log:
        process = subprocess.Popen(
            locust, cwd=PROJECT, stdout=log, stderr=subprocess.STDOUT,
            env={**os.environ, "LOAD_PLAN": str(plan_file), "PYTHONWARNINGS": "ignore"},
        )  # fmt: skip
        try:
            yield done
            if until is not None and until.is_set():
                process.send_signal(signal.SIGTERM)
            process.wait(seconds + STOP_SECONDS + 60)
        finally:
            process.kill()
            process.wait()
    if not report_file.exists():
        sys.exit(f"locust has ended: {Path(log.name).read_text()[-4000:]}")
    settle(deployment.tenants)
    report = json.loads(report_file.read_text())
    run = Run(
        users=users,
        seconds=report["seconds"],
        calls=report["calls"],
        violations=report["violations"],
        accepted=len(report["accepted"]),
        answered=0,
        erased=len(report["erased"]),
        resent=report["resent"],
        loads=(before, os.getloadavg()[0]),
    )
    if deployment.echo.crossed:
        run.losses["crossed"] += len(deployment.echo.crossed)
    compare(run, report, deployment.tenants, number)
    compare_slack(run, report, deployment)
    run.losses = +run.losses  # without zeros
    done.append(run)


def settle(tenants: Sequence[Tenant]) -> None:
    """Wait until no job waits. Fail after SETTLE_SECONDS without progress."""
    fewest, since = math.inf, time.monotonic()
    while waiting := sum(map(_waiting, tenants)):
        if waiting < fewest:
            fewest, since = waiting, time.monotonic()
        if time.monotonic() - since > SETTLE_SECONDS:
            sys.exit(f"{waiting} messages wait, and no fewer for {SETTLE_SECONDS} seconds")
        time.sleep(0.5)


def _waiting(tenant: Tenant) -> float:
    try:
        ((waiting,),) = tenant.rows(
            "SELECT (SELECT count(*) FROM orchestrator_pendingreply WHERE failed_at IS NULL)"
            " + (SELECT count(*) FROM memory_pendingembedding)"
            " + (SELECT count(*) FROM tenants_job"
            "    WHERE failed_at IS NULL AND kind IN ('arrival', 'delivery'))"
        )
    except psycopg.OperationalError:
        return math.inf
    return float(waiting)


def compare(run: Run, report: Any, tenants: Sequence[Tenant], number: int) -> None:
    """Compare the answers to clients with the rows: each accepted message has one reply."""
    first, last = FIRST_NUMBER * number, FIRST_NUMBER * (number + 1)
    rows: dict[str, list[list[str | None]]] = {}
    for tenant in tenants:
        for token, slug_and_row in _messages(tenant, first, last):
            rows.setdefault(token, []).append(slug_and_row)
    for token in report["erased"]:
        run.losses["not erased"] += len(rows.pop(token, []))
    for token in report["uncertain"]:
        _count(run, token, rows.pop(token, []), is_certain=False)
    for token in report["accepted"]:
        _count(run, token, rows.pop(token, []), is_certain=True)
    run.losses["unknown to clients"] += len(rows)


def compare_slack(run: Run, report: Any, deployment: LoadDeployment) -> None:
    """Compare messages in Slack with posts: each message has one, in its workspace."""
    shown = Counter[str]()
    for slug, workspace in WORKSPACES.items():
        for text in deployment.workspaces.posts(workspace):
            shown[text] += 1
            token = TOKEN.search(text)
            run.losses["crossed in Slack"] += token is not None and token[1] != slug
    for token in report["in_slack"]:
        posts = shown[f"Heard {token}."]
        run.losses["not shown in Slack"] += posts == 0
        run.losses["shown more than once in Slack"] += posts > 1


def _messages(tenant: Tenant, first: int, last: int) -> Iterator[tuple[str, list[str | None]]]:
    found = tenant.rows(
        "SELECT substring(asked.content FROM '^I say (.*)[.]$'), reply.content"
        " FROM memory_message AS asked"
        " LEFT JOIN memory_message AS reply ON reply.in_reply_to_id = asked.id"
        " WHERE asked.role = 'user' AND asked.content LIKE 'I say %%'"
        " AND substring(asked.content FROM '([0-9]+)[.]$')::bigint >= %s"
        " AND substring(asked.content FROM '([0-9]+)[.]$')::bigint < %s",
        first,
        last,
    )
    return ((token, [tenant.slug, reply]) for token, reply in found)


def _count(run: Run, token: str, rows: list[list[str | None]], *, is_certain: bool) -> None:
    """Count the outcome of a message."""
    if is_certain and not rows:
        run.losses["lost"] += 1
    if len(rows) > 1:
        run.losses["doubled"] += len(rows) - 1
    for slug, reply in rows[:1]:
        if reply is None:
            run.losses["given up"] += 1
        elif slug != token.partition("-")[0] or reply != f"Heard {token}.":
            run.losses["crossed"] += 1
        else:
            run.answered += 1
