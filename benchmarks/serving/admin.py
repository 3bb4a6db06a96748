"""Time each page of a tenant's admin with 500,000 messages and with 500.

    python -m benchmarks.serving.admin [--messages 500000] [--people 5000] [--rounds 20]

benchmarks.serving.large_tenant fills both tenants. Requests alternate between them and pass the
whole Django stack. The script opens all pages that have a query budget, and the list and the newest
row of each model. It prints medians, 95th percentiles, and the ratio of the latter.
"""

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from benchmarks.serving.large_tenant import filled
from benchmarks.tools.throwaway import set_up, throwaway_tenant

FEW: Final = 500
# Pages above this ratio are timed again, with three times as many rounds.
TIMED_AGAIN: Final = 2.0


def pages(tenant_id: UUID) -> dict[str, str]:
    """Return the timed pages: all with a query budget, and lists and rows of all models."""
    from django.contrib.auth.models import User
    from django.urls import reverse

    from konstruct.api.models import ApiKey
    from konstruct.orchestrator.models import Agent, ChannelIdentity, Escalation, ExtractionRun
    from memory.models import MemoryEntry, Message
    from tenants.audit.models import ErasureRequest, MessageErasure
    from tenants.context import tenant_scope
    from tests.konstruct.admin.test_budgets import PAGES

    def at(name: str, *arguments: Any, **query: Any) -> str:
        path = reverse(f"admin:{name}", urlconf="konstruct.urls.tenant", args=arguments)
        return f"{path}?{urlencode(query)}" if query else path

    with tenant_scope(tenant_id):
        message = Message.objects.filter(role="assistant").order_by("-number")[100]
        known = {
            "agent": Agent.objects.earliest("name").pk,
            "message": message.pk,
            "shared": Message.objects.filter(thread_id="shared").latest("created_at").pk,
            "fact": MemoryEntry.objects.filter(state="active").latest("created_at").pk,
            "escalation": Escalation.objects.earliest("opened_at").pk,
            "identity": ChannelIdentity.objects.latest("created_at").pk,
            "run": ExtractionRun.objects.latest("created_at").pk,
            "key": ApiKey.objects.latest("created_at").pk,
            "erasure": ErasureRequest.objects.latest("created_at").pk,
            "message_erasure": MessageErasure.objects.latest("created_at").pk,
            "person": User.objects.get(username="invited").pk,
        }
        listed = dict(_pages_of_models(at))
    user, messages = message.user_id, at("memory_message_changelist")
    budgeted = {
        name: f"/admin/{address.format(**known)}".replace("user=maria", f"user={user}")
        for name, (address, _) in PAGES.items()
    }
    return {
        "today": at("index"),
        **budgeted,
        "conversations of an agent": at("conversations", agent=message.agent_id),
        "conversations of a user": at("conversations", user=user),
        "why a reply": f"{at('conversation', message.pk)}?why={message.pk}",
        "people, searched": at("people", q="user1"),
        "people, by name": at("people", q="maria"),
        "person as of a day": at("person", user=user, at="2026-01-01"),
        "search of one person": at("search_page", q="lighthouses", user=user),
        "messages, page 2": f"{messages}?p=2",
        "messages of an agent": f"{messages}?agent={message.agent_id}",
        "messages of a user": f"{messages}?user={user}",
        "messages, searched": f"{messages}?q=lighthouse harbours",
        **listed,
    }


def _pages_of_models(at: Any) -> Iterator[tuple[str, str]]:
    """Yield the list and the newest row of each model."""
    from konstruct.urls import tenant as _  # noqa: F401  (it registers the models)
    from tenants.admin.sites import tenant_site

    for model in tenant_site._registry:
        name = f"{model._meta.app_label}_{model._meta.model_name}"
        yield f"list of {model._meta.verbose_name_plural}", at(f"{name}_changelist")
        row = model._default_manager.order_by("pk").last()
        if row is not None:
            yield f"{model._meta.verbose_name}", at(f"{name}_change", row.pk)


def client_of(tenant_id: UUID) -> Any:
    """Return a browser of a superuser of the tenant."""
    from django.contrib.auth.models import User
    from django.test import Client

    from tenants.context import tenant_scope
    from tenants.models import Domain

    client = Client(headers={"Host": Domain.objects.get(tenant_id=tenant_id).domain})
    with tenant_scope(tenant_id):
        client.force_login(
            User.objects.filter(username="benchmark").first()
            or User.objects.create_superuser("benchmark")
        )
    return client


def time_pages(many: UUID, few: UUID, rounds: int) -> dict[str, dict[str, float]]:
    """Open each page of both tenants in turns. Return medians and 95th percentiles in ms.

    Pages above TIMED_AGAIN are opened three times as often, and have the figures of that.
    """
    addresses = {"many": pages(many), "few": pages(few)}
    clients = {"many": client_of(many), "few": client_of(few)}
    times: dict[str, dict[str, float]] = {}
    for name in addresses["many"]:
        if name not in addresses["few"]:
            continue
        both = {side: partial(open_page, clients[side], addresses[side][name]) for side in clients}
        found = in_turns(both, rounds)
        if found["ratio"] > TIMED_AGAIN:
            found = in_turns(both, 3 * rounds)
        times[name] = found
        print(f"{name:34} {found}", flush=True)
    print(f"{len(times)} pages, the largest ratios:")
    for name in sorted(times, key=lambda name: -times[name]["ratio"])[:10]:
        print(f"  {name:32} {times[name]}")
    return times


def open_page(client: Any, path: str) -> None:
    """Open a page."""
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)


def in_turns(acts: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Run two functions in turns. Return medians, 95th percentiles, and their ratio.

    The first round is not counted: it compiles templates and plans.
    """
    durations: dict[str, list[float]] = {side: [] for side in acts}
    for _ in range(rounds + 1):
        for side, act in acts.items():
            started = time.perf_counter()
            act()
            durations[side].append(1000 * (time.perf_counter() - started))
    found = {}
    for side, times in durations.items():
        warm = sorted(times[1:])
        found[f"{side} p50"] = round(statistics.median(warm), 1)
        found[f"{side} p95"] = round(warm[math.ceil(0.95 * len(warm)) - 1], 1)
    first, second = acts
    found["ratio"] = round(found[f"{first} p95"] / found[f"{second} p95"], 2)
    return found


def main() -> None:
    """Fill two tenants, time their pages, and remove them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=500_000)
    parser.add_argument("--people", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    set_up()
    with throwaway_tenant() as many, throwaway_tenant() as few:
        started = time.monotonic()
        filled(many, arguments.messages, arguments.people)
        filled(few, FEW, 5)
        print(f"{arguments.messages:,} messages made in {time.monotonic() - started:.0f} s")
        times = time_pages(many, few, arguments.rounds)
    if arguments.json:
        arguments.json.write_text(json.dumps(times, indent=1))


if __name__ == "__main__":
    main()
