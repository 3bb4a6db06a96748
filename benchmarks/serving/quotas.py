"""Measure accepting a message without quotas, with quotas, and near a limit.

    python -m benchmarks.serving.quotas [--rounds 20] [--pooled]

One process runs the view of the API for a tenant of each kind, in turns. `far`: hard limits of all
resources of a message, far away. `near`: fewer than a hundred messages are left, so that requests
of the tenant wait for each other. With --pooled through a PgBouncer in transaction mode. The script
prints medians and 95th percentiles in milliseconds.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.load.deployment import UNLIMITED
from benchmarks.tools.throwaway import set_up, throwaway_tenant

PER_TURN: Final = 25
WARM_UP_ROUNDS: Final = 2
FAR: Final = Decimal(10**9)
KINDS: Final = ("none", "far", "near")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20, help=f"turns of {PER_TURN} messages")
    parser.add_argument("--pooled", action="store_true", help="through a PgBouncer")
    options = parser.parse_args()
    os.environ.update(UNLIMITED)
    set_up()
    with ExitStack() as stack:
        tenants = {kind: stack.enter_context(throwaway_tenant()) for kind in KINDS}
        keys = {kind: key_of(tenant_id) for kind, tenant_id in tenants.items()}
        if options.pooled:
            stack.enter_context(through_pooler())
        measure(tenants, keys, options.rounds)


def key_of(tenant_id: Any) -> str:
    """Create an agent. Return a key."""
    from konstruct.api.auth.keys import issue_key
    from konstruct.orchestrator.agents import create_agent

    create_agent(tenant_id=tenant_id, name="ada")
    return str(issue_key(tenant_id=tenant_id, name="benchmark")[1])


def through_pooler() -> Any:
    """Connect this thread through a pooler during the block."""
    from contextlib import contextmanager

    from django.db import connection

    from tests.servers.pooler import pooler

    @contextmanager
    def running() -> Any:
        place = connection.settings_dict
        before = {name: place[name] for name in ("HOST", "PORT")}
        with pooler() as url:
            connection.close()
            target = urlsplit(url)
            place.update(HOST=target.hostname, PORT=target.port)
            try:
                yield
            finally:
                connection.close()
                place.update(before)

    return running()


def set_far(tenant_id: Any) -> None:
    """Set distant limits for all resources of a message."""
    from konstruct.orchestrator.usage import MESSAGE_QUOTAS
    from tenants.limits.quotas import Limit, set_limits

    set_limits(tenant_id, {quota: Limit(hard=FAR) for quota in MESSAGE_QUOTAS})


def set_near(tenant_id: Any) -> None:
    """Set a limit that leaves the messages of a turn, and fewer than a hundred."""
    from konstruct.orchestrator.usage import usage_of
    from tenants.context import tenant_scope
    from tenants.limits.quotas import Limit, Quota, set_limits
    from tenants.models import Tenant

    set_far(tenant_id)
    with tenant_scope(tenant_id):
        used = usage_of(Tenant.objects.get(pk=tenant_id), [Quota.MESSAGES])[Quota.MESSAGES]
    set_limits(tenant_id, {Quota.MESSAGES: Limit(hard=Decimal(used or 0) + 3 * PER_TURN)})


def measure(tenants: dict[str, Any], keys: dict[str, str], rounds: int) -> None:
    """Measure the tenants in turns, and print the figures."""
    from django.test import Client

    client = Client(headers={"Host": "localhost"})
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    before: dict[str, Callable[[Any], None]] = {"far": set_far, "near": set_near}
    for number in range(rounds + WARM_UP_ROUNDS):
        for kind in KINDS:
            if kind in before:
                before[kind](tenants[kind])
            found = [send(client, keys[kind], number, n) for n in range(PER_TURN)]
            if number >= WARM_UP_ROUNDS:
                times[kind].extend(found)
    for kind, values in times.items():
        p95 = statistics.quantiles(values, n=20)[18]
        sys.stdout.write(
            f"{kind:6} median {statistics.median(values):6.2f} ms   p95 {p95:6.2f} ms\n"
        )


def send(client: Any, key: str, turn: int, number: int) -> float:
    """Send a message. Return the milliseconds until it is accepted."""
    body = {"agent": "ada", "user_id": f"user-{number % 5}", "content": f"Turn {turn}, {number}."}
    began = time.perf_counter()
    answer = client.post(
        "/api/v1/messages/",
        body,
        content_type="application/json",
        headers={"Authorization": f"Bearer {key}"},
    )
    milliseconds = 1000 * (time.perf_counter() - began)
    if answer.status_code != 202:
        sys.exit(f"{answer.status_code}: {answer.text}")
    return milliseconds


if __name__ == "__main__":
    main()
