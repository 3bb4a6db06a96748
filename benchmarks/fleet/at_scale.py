"""Measure a deployment of 1,000 tenants, one with 500,000 messages.

    KONSTRUCT_HOME=FOLDER python -m benchmarks.fleet.at_scale [--tenants 1000]
        [--messages 500000] [--rounds 20]
        [--only pages,person,operators,exports,quotas,commands,pooled]

The script creates the missing tenants in the embedded Postgres of KONSTRUCT_HOME with the service
of `create_tenant`, and 60 tenants in FOLDER-few. It fills `large` (500,000 messages of 5,000
people), `talkers` (500,000 of 5) and `small` (500 of 5). Both homes stay for another run; remove
them afterwards. Each part runs in its own process:

- pages: each page of a tenant's admin in `large`, by turns with `small`;
- person: the pages of one person with 100,000 messages, by turns with one of 100;
- operators: each page of the operators' admin with all tenants, by turns with 60, by HTTP;
- exports: growth of the process's memory by exports in `large` and in `small`;
- quotas: 300 tenants with limits: measuring, `quota`, and requests at the limit;
- commands: `check`, `migrate` with nothing to do, and what a Prometheus gets;
- pooled: pages and calls of `large` through PgBouncer in transaction mode, by turns with none.
"""

import argparse
import contextlib
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import httpx

from benchmarks.fleet.by_the_hundred import make_tenants
from benchmarks.serving import admin
from benchmarks.serving.exports import measured
from benchmarks.serving.large_tenant import filled
from benchmarks.serving.rest import LIMITS
from benchmarks.tools.throwaway import PROJECT, manage, set_up

# These rows fill a page, too.
FEW_TENANTS: Final = 60
FEW_PEOPLE: Final = 5
FILLED: Final = ("large", "talkers", "small")
WITH_QUOTAS: Final = 300
OWNERS: Final = {"KONSTRUCT_DB_ROLE": "owner"}


def main() -> None:
    """Create what is missing, and run the parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tenants", type=int, default=1000)
    parser.add_argument("--messages", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--part", choices=[*PARTS, "make", "session"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    set_up()
    if options.part == "make":
        make(options.tenants)
    elif options.part == "session":
        print(session())
    elif options.part:
        PARTS[options.part](options.rounds)
    else:
        from konstruct.local import embedded

        embedded.ensure()
        _run("make", options, OWNERS)
        _run("make", options, {**OWNERS, **few_home()}, tenants=FEW_TENANTS)
        fill_once("large", options.messages, options.messages // 100)
        fill_once("talkers", options.messages, FEW_PEOPLE)
        fill_once("small", admin.FEW, FEW_PEOPLE)
        for part in options.only.split(","):
            print(f"\n{part}", flush=True)
            _run(part, options, {})


def _run(
    part: str, options: argparse.Namespace, changes: Mapping[str, str], tenants: int = 0
) -> None:
    subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.fleet.at_scale", "--part", part),
            *("--tenants", str(tenants or options.tenants), "--rounds", str(options.rounds)),
        ],
        env={**os.environ, **changes},
        check=True,
    )


def few_home() -> dict[str, str]:
    """Return the environment of processes of the deployment with few tenants."""
    return {"KONSTRUCT_HOME": f"{os.environ['KONSTRUCT_HOME'].rstrip('/')}-few"}


def make(tenants: int) -> None:
    """Create tenants as the owner."""
    from konstruct.local import embedded
    from tenants.models import Tenant
    from tenants.schemas import provisioning

    embedded.ensure()
    manage("migrate")
    for slug in FILLED:
        if not Tenant.objects.filter(slug=slug).exists():
            provisioning.create_tenant(slug=slug)
    print(f"{make_tenants(tenants)} tenants", flush=True)


def tenant_called(slug: str) -> UUID:
    """Return the id of a tenant."""
    from tenants.models import Tenant

    found: UUID = Tenant.objects.get(slug=slug).pk
    return found


def fill_once(slug: str, messages: int, people: int) -> None:
    """Fill a tenant that has no messages."""
    from memory.models import Message
    from tenants.context import tenant_scope

    tenant_id = tenant_called(slug)
    with tenant_scope(tenant_id):
        if Message.objects.exists():
            return
    began = time.monotonic()
    filled(tenant_id, messages, people)
    print(f"{slug}: {messages:,} messages in {time.monotonic() - began:.0f} s", flush=True)


# --- Pages ----------------------------------------------------------------------------------------


def pages(rounds: int) -> None:
    """Time each page of a tenant's admin."""
    admin.time_pages(tenant_called("large"), tenant_called("small"), rounds)


def person(rounds: int) -> None:
    """Time pages of a person with 100,000 messages and of one with 100."""
    many, few = tenant_called("talkers"), tenant_called("small")
    clients = {"many": admin.client_of(many), "few": admin.client_of(few)}
    addresses = {
        "person": "/admin/people/person/?user=user1",
        "as of a day": "/admin/people/person/?user=user1&at=2026-11-01",
        "messages only": "/admin/people/person/?user=user1&kind=message",
        "activity only": "/admin/people/person/?user=user1&kind=access",
        "list of people": "/admin/people/",
        "conversations": "/admin/conversations/?user=user1",
        "messages": "/admin/memory/message/?user=user1",
        "recalls": "/admin/memory/recallevent/?user=user1",
        "vectors": "/admin/memory/conversationembedding/?user=user1",
        "facts": "/admin/memory/memoryentry/?user=user1",
        "erasure": "/admin/people/person/erase/?user=user1",
        "search": "/admin/search/?q=lighthouses&user=user1",
    }
    for name, address in addresses.items():
        acts = {side: partial(admin.open_page, clients[side], address) for side in clients}
        print(f"  {name:20} {admin.in_turns(acts, rounds)}", flush=True)


def operators(rounds: int) -> None:
    """Time each page of the operators' admin, in both deployments."""
    with contextlib.ExitStack() as stack:
        browsers = {
            "many": stack.enter_context(browsing({})),
            "few": stack.enter_context(browsing(few_home())),
        }
        listed = "/admin/tenants/tenant/"
        others = re.findall(r"[?&;]p=(\d+)", browsers["many"].get(listed).text)
        last = {"many": f"{listed}?p={max(map(int, others), default=1)}", "few": listed}
        one = {
            side: re.findall(r"tenants/tenant/([0-9a-f-]{36})/change", client.get(listed).text)[0]
            for side, client in browsers.items()
        }
        everywhere = {
            "home": "/admin/",
            "tenants": listed,
            "tenants, searched": f"{listed}?q=fleet-",  # a full page in both
            "tenants by state": f"{listed}?state__exact=active",
            "tenants to be migrated": f"{listed}?schema=behind",
            "tenants with a reached quota": f"{listed}?quota=reached",
            "new tenant": f"{listed}add/",
            "operators": "/admin/auth/user/",
            "groups": "/admin/auth/group/",
            "log": "/admin/tenants/operatorevent/",
        }
        of_one = {
            "tenant": "/admin/tenants/tenant/{}/change/",
            "history": "/admin/tenants/tenant/{}/history/",
            "suspend": "/admin/tenants/{}/suspend/",
            "remove": "/admin/tenants/{}/remove/",
            "invite": "/admin/tenants/{}/invite/",
        }
        paths = {
            **{name: dict.fromkeys(browsers, path) for name, path in everywhere.items()},
            "tenants, last page": last,
            **{
                name: {side: path.format(one[side]) for side in browsers}
                for name, path in of_one.items()
            },
        }
        for name, of_sides in paths.items():
            acts = {side: partial(fetch, browsers[side], path) for side, path in of_sides.items()}
            print(f"  {name:30} {admin.in_turns(acts, rounds)}", flush=True)


def session() -> str:
    """Return the session of a superuser of the tenant SESSION_OF, or of an operator."""
    from django.contrib.auth.models import User
    from django.test import Client

    slug = os.environ.get("SESSION_OF", "")
    if slug:
        client = admin.client_of(tenant_called(slug))
    else:
        client = Client(headers={"Host": "localhost"})
        client.force_login(
            User.objects.filter(username="benchmark").first()
            or User.objects.create_superuser("benchmark")
        )
    return f"{client.cookies['sessionid'].value} {client.defaults['HTTP_HOST']}"


@contextlib.contextmanager
def browsing(changes: Mapping[str, str], slug: str = "") -> Iterator[httpx.Client]:
    """Serve a deployment with gunicorn, and yield a browser of its operators or of a tenant."""
    from tests.konstruct.api.live import serving

    environment = {**os.environ, **LIMITS, **changes, "SESSION_OF": slug}
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(environment, Path(folder) / "log") as url,
    ):
        ran = subprocess.run(
            [sys.executable, "-m", "benchmarks.fleet.at_scale", "--part", "session"],
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        key, host = ran.stdout.split()[-2:]
        headers = {"Cookie": f"sessionid={key}", "Host": host}
        with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
            yield client


def fetch(client: httpx.Client, path: str) -> None:
    """Open a page."""
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)


# --- Exports, quotas, commands --------------------------------------------------------------------


def exports(rounds: int) -> None:
    """Measure exports of lists and of a person."""
    paths = {
        "messages": "/admin/memory/message/export/",
        "people": "/admin/people/export/",
        "access log": "/admin/audit/accessevent/export/",
    }
    for name, path in paths.items():
        for slug in ("large", "small"):
            found = measured(tenant_called(slug), path)
            print(f"  {name} of {slug}: {found}", flush=True)
    for slug in ("talkers", "small"):
        found = measured(tenant_called(slug), "/admin/people/person/export/?user=user1")
        print(f"  a person of {slug}: {found}", flush=True)


def quotas(rounds: int) -> None:
    """Set limits for 300 tenants, and time the reads and the checks of limits."""
    from konstruct.orchestrator.agents import create_agent, find_agent
    from konstruct.orchestrator.exceptions import AgentNotFound
    from konstruct.orchestrator.pipeline.accept import Incoming, accept
    from konstruct.orchestrator.usage import measure_due, usage_of
    from tenants.context import tenant_scope
    from tenants.limits.quotas import Limit, Quota, QuotaExceeded, set_limits
    from tenants.models import Tenant

    tenants = list(Tenant.objects.exclude(slug__in=FILLED).order_by("slug")[: WITH_QUOTAS + 1])
    agents = {}
    for tenant in tenants:
        try:
            with tenant_scope(tenant.pk):
                agents[tenant.pk] = find_agent("ada").pk
        except AgentNotFound:
            agents[tenant.pk] = create_agent(tenant_id=tenant.pk, name="ada").pk

    def send(tenant: Tenant) -> bool:
        """Return whether a message was accepted."""
        incoming = Incoming(agents[tenant.pk], "maria", "t", "rest", "Hello")
        try:
            return accept(incoming, tenant_id=tenant.pk)[1]
        except QuotaExceeded:
            return False

    *limited, free = tenants
    far = Limit(hard=Decimal(10**9))
    for tenant in limited:
        set_limits(tenant.pk, dict.fromkeys((Quota.MESSAGES, Quota.MEMORIES, Quota.TOKENS), far))
    whole = itertools.cycle(limited)
    acts: dict[str, Callable[[], object]] = {
        "many": lambda: send(next(whole)),
        "few": lambda: send(free),
    }
    print(f"  accept with three limits, beside none: {admin.in_turns(acts, 10 * rounds)}")
    outcomes: Counter[tuple[bool, ...]] = Counter()
    for tenant in limited:
        tenant.refresh_from_db()
        with tenant_scope(tenant.pk):
            used = Decimal(usage_of(tenant, [Quota.MESSAGES])[Quota.MESSAGES] or 0)
        set_limits(tenant.pk, {Quota.MESSAGES: Limit(soft=used, hard=used + 2)})
        outcomes[tuple(send(tenant) for _ in range(4))] += 1
    print(f"  four messages with room for two, accepted in {len(limited)} tenants: {outcomes}")
    began, runs = time.perf_counter(), []
    while done := measure_due():
        runs.append(done)
    seconds = time.perf_counter() - began
    print(f"  measured {runs} tenants in {seconds:.1f} s, {1000 * seconds / sum(runs):.1f} ms each")
    reached = Tenant.objects.filter(usage__has_key="reached").exclude(usage__reached={}).count()
    print(f"  tenants with a reached limit: {reached}")


def commands(rounds: int) -> None:
    """Time commands of operators, and scrapes."""
    for changes in ({}, few_home()):
        for command in (["check", "--database", "default"], ["migrate"]):
            began = time.perf_counter()
            ran = subprocess.run(
                [sys.executable, PROJECT / "manage.py", *command],
                env={**os.environ, **changes},
                capture_output=True,
                text=True,
                check=False,
            )
            seconds = time.perf_counter() - began
            print(
                f"  {'ten tenants' if changes else 'all'}: {command[0]} {seconds:.1f} s", flush=True
            )
            print(f"    {ran.stderr[:2000]}")
    from prometheus_client.exposition import generate_latest

    from konstruct.metrics import States
    from tenants.metrics import registry
    from tenants.models import Job

    body, times = b"", []
    for _ in range(rounds):
        collected = registry(States())  # a new one, without cached values
        began = time.perf_counter()
        body = generate_latest(collected)
        times.append(1000 * (time.perf_counter() - began))
    lines = [line for line in body.decode().splitlines() if not line.startswith("#")]
    of_tenants = sum('tenant="' in line for line in lines)
    waiting = Job.objects.values("tenant_id").distinct().count()
    print(
        f"  a scrape: p50 {sorted(times)[len(times) // 2]:.0f} ms, longest {max(times):.0f};"
        f" {len(lines)} series, {of_tenants} of tenants, {waiting} tenants with jobs"
    )


def pooled(rounds: int) -> None:
    """Time pages and calls through PgBouncer and without it."""
    from konstruct.api.auth.keys import issue_key
    from konstruct.local import services
    from memory.models import Message
    from tenants.context import tenant_scope
    from tests.servers import pooler

    large = tenant_called("large")
    _, key = issue_key(tenant_id=large, name="pooled")
    with tenant_scope(large):
        message = Message.objects.filter(role="assistant").latest("created_at")
        agent = "agent-0"
    paths = {name: path for name, path in admin.pages(large).items() if name in POOLED_PAGES}
    calls: dict[str, tuple[str, str, Any]] = {
        "GET messages": ("GET", "/api/v1/messages/?limit=50", None),
        "GET messages of a user": (
            *("GET", f"/api/v1/messages/?agent={agent}&user_id={message.user_id}"),
            None,
        ),
        "GET conversations": ("GET", "/api/v1/conversations/", None),
        "GET users": ("GET", "/api/v1/users/", None),
        "GET facts": ("GET", "/api/v1/facts/", None),
        "GET a timeline": ("GET", f"/api/v1/users/{message.user_id}/timeline/", None),
        "GET usage": ("GET", "/api/v1/usage/", None),
        "POST a message": (
            *("POST", "/api/v1/messages/"),
            {"agent": agent, "user_id": "pooled", "content": "Hello"},
        ),
        "POST a search": (
            *("POST", "/api/v1/memories/search/"),
            {"agent": agent, "user_id": message.user_id, "query": "night trains"},
        ),
    }
    production = {
        "DATABASE_OWNER_URL": services.database_url("owner"),
        "REDIS_URL": services.redis_url(),
        "CELERY_BROKER_URL": services.broker_url(),
        "SECRET_KEY": "of the benchmark, which serves nobody: " + "x" * 32,
        "DEBUG": "1",
    }
    direct = {**production, "DATABASE_URL": services.database_url("app")}
    with contextlib.ExitStack() as stack:
        url = f"{stack.enter_context(pooler.pooler(size=3))}/{_database()}"
        browsers = {
            "pooled": stack.enter_context(browsing({**direct, "DATABASE_URL": url}, "large")),
            "direct": stack.enter_context(browsing(direct, "large")),
        }
        for name, path in paths.items():
            acts = {side: partial(fetch, client, path) for side, client in browsers.items()}
            print(f"  {name:30} {admin.in_turns(acts, rounds)}", flush=True)
        for name, request in calls.items():
            acts = {
                side: partial(_call, client, str(key), *request)
                for side, client in browsers.items()
            }
            print(f"  {name:30} {admin.in_turns(acts, rounds)}", flush=True)


POOLED_PAGES: Final = frozenset(
    {
        *("today", "conversations", "conversation", "people", "person", "search_page"),
        *("activity", "list of messages", "list of access events", "memories", "fact_review"),
    }
)


def _database() -> str:
    from django.db import connection

    name: str = connection.settings_dict["NAME"]
    return name


def _call(client: httpx.Client, key: str, method: str, path: str, body: Any) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    answer = client.request(method, path, json=body, headers=headers)
    assert answer.is_success, (path, answer.text)


PARTS: Final[dict[str, Callable[[int], None]]] = {
    "pages": pages,
    "person": person,
    "operators": operators,
    "exports": exports,
    "quotas": quotas,
    "commands": commands,
    "pooled": pooled,
}

if __name__ == "__main__":
    main()
