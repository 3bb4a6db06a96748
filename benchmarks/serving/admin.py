"""What each page of a tenant's admin takes with 500,000 messages, and with 500.

    python -m benchmarks.serving.admin [--messages 500000] [--people 5000] [--rounds 20]

Rows are made by Postgres itself: a month of messages with 5 agents, and for a part of them
vectors, postings, recall events, facts, escalations, model calls and entries of the access log.
All vectors are the same one and the HNSW index is left out, which no page of these uses; all else
is the product's: its other indexes, its role, its policies, its pages through Django's whole stack.
Walked are the list and the newest row of each model, and the pages that are no model's. Both
tenants are asked by turns. Printed are medians, 95th percentiles, and the ratio of the latter.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from benchmarks.tools.throwaway import set_up, throwaway_tenant

AGENTS: Final = 5
FEW: Final = 500
FILL = (
    "DROP INDEX embedding_hnsw",
    """INSERT INTO orchestrator_agent (name, recall_weights)
       SELECT 'agent ' || n, '{{}}' FROM generate_series(1, {agents}) AS n""",
    """INSERT INTO memory_message (agent_id, user_id, thread_id, channel, role, content, created_at)
       SELECT (SELECT array_agg(id ORDER BY name) FROM orchestrator_agent)[1 + mod(n, {agents})],
              'user' || mod(n, {users}), 'thread' || mod(n, {threads}), 'rest',
              CASE WHEN mod(n / {threads}, 2) = 0 THEN 'user' ELSE 'assistant' END,
              'Message ' || n || ' is about harbours, lighthouses and night trains.',
              now() - interval '30 days' * (1 - n::float8 / {messages})
       FROM generate_series(1, {messages}) AS n""",
    """INSERT INTO memory_conversationembedding
           (agent_id, user_id, message_id, content, role, embedding, embedding_model, created_at)
       SELECT agent_id, user_id, id, content, role, array_fill(0.05, ARRAY[384])::vector, 'model',
              created_at
       FROM memory_message WHERE mod(number, 5) = 0""",
    """INSERT INTO memory_scope (id, agent_id, user_id)
       SELECT row_number() OVER (), agent_id, user_id
       FROM (SELECT DISTINCT agent_id, user_id FROM memory_message) AS known""",
    """INSERT INTO memory_posting (scope_id, lexeme_hash, message_number, weight)
       SELECT scope.id, word.h, message.number, 1
       FROM memory_message AS message JOIN memory_scope AS scope USING (agent_id, user_id),
            LATERAL (VALUES (%(common)s::bigint), (message.number)) AS word (h)
       WHERE mod(message.number, 20) = 0""",
    """INSERT INTO memory_recallevent (agent_id, user_id, reply_id, query, hits, cut, injected,
                                       abstained, embedding_model, milliseconds, created_at)
       SELECT agent_id, user_id, id, content, '[]', '[]', '[]', mod(number, 3) = 0, 'model', 4,
              created_at
       FROM memory_message WHERE mod(number, 5) = 0""",
    """INSERT INTO memory_memoryentry
           (agent_id, user_id, content, content_digest, embedding, embedding_model, created_at)
       SELECT agent_id, user_id, 'Fact ' || number, sha256(convert_to('Fact ' || number, 'UTF8')),
              array_fill(0.05, ARRAY[384])::vector, 'model', created_at
       FROM memory_message WHERE mod(number, 50) = 0""",
    """INSERT INTO orchestrator_escalation
           (agent_id, user_id, thread_id, channel, opened_by, reason, opened_at)
       SELECT agent_id, user_id, 'case' || number, channel, 'user', 'Lost.', created_at
       FROM memory_message WHERE mod(number, 500) = 0""",
    """INSERT INTO orchestrator_modelcall (agent_id, purpose, model, outcome, created_at)
       SELECT agent_id, 'reply', 'fast', 'done', created_at
       FROM memory_message WHERE mod(number, 2) = 0""",
    """INSERT INTO audit_accessevent
           (actor_kind, actor_id, actor, action, subject, agent_id, user_id, created_at)
       SELECT 'person', '1', 'eva', 'view', 'conversation', agent_id, user_id, created_at
       FROM memory_message WHERE mod(number, 5) = 0""",
    "ANALYZE",
)


def fill(tenant_id: UUID, messages: int, people: int) -> None:
    """Make the rows, as the owner, who may drop the index."""
    from django.db import connection

    from memory.text.lexical import lexeme_hash, stem
    from tenants.context import tenant_scope

    numbers = {"messages": messages, "users": people, "agents": AGENTS, "threads": 2 * people}
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        for statement in FILL:
            cursor.execute(statement.format(**numbers), {"common": lexeme_hash(stem("harbours"))})


def pages(tenant_id: UUID) -> dict[str, str]:
    """The pages that are timed."""
    from django.urls import reverse

    from konstruct.orchestrator.models import Agent, Escalation
    from memory.models import MemoryEntry, Message
    from tenants.context import tenant_scope

    def at(name: str, *arguments: Any, **query: Any) -> str:
        path = reverse(f"admin:{name}", urlconf="konstruct.urls.tenant", args=arguments)
        return f"{path}?{urlencode(query)}" if query else path

    with tenant_scope(tenant_id):
        agent = Agent.objects.earliest("name").pk
        message = Message.objects.filter(role="user").order_by("-number")[100]
        fact = MemoryEntry.objects.order_by("-created_at")[0].pk
        escalation = Escalation.objects.earliest("opened_at").pk
        listed = dict(_pages_of_models(at))
    user = message.user_id
    both = {"agent": message.agent_id, "user": user}
    messages = at("memory_message_changelist")
    return {
        "today": at("index"),
        "activity": at("activity"),
        "usage": at("usage"),
        "conversations": at("conversations"),
        "conversations of an agent": at("conversations", agent=agent),
        "conversations of a user": at("conversations", user=user),
        "conversation": at("conversation", message.pk),
        "escalation": at("escalation", escalation),
        "exclude a message": at("exclude_message", message.pk),
        "fact review": at("fact_review"),
        "decide a fact": at("decide_fact", fact, do="retract"),
        "merge facts": at("merge_facts", fact),
        "neighbours": at("neighbours", message.pk),
        "reply review": at("reply_review"),
        "window": at("window", **both),
        "clear window": at("clear_window", **both),
        "try an agent": at("try_agent", agent, user=user),
        "saved questions": at("agent_questions", agent),
        "versions": at("agent_versions", agent),
        "erase a message": at("erase_message", message.pk),
        "people": at("people"),
        "people, searched": at("people", q="user1"),
        "person": at("person", user=user),
        "person as of a day": at("person", user=user, as_of="2026-01-01"),
        "erase a person": at("erase_person", user=user),
        "sessions": at("sessions"),
        "search": at("search_page", q="lighthouses"),
        "messages, page 2": f"{messages}?p=2",
        "messages of an agent": f"{messages}?agent={agent}",
        "messages of a user": f"{messages}?user={user}",
        "messages, searched": f"{messages}?q=lighthouse harbours",
        **listed,
    }


def _pages_of_models(at: Any) -> Iterator[tuple[str, str]]:
    """Yield the list and the newest row of each model."""
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
        client.force_login(User.objects.create_superuser("benchmark"))
    return client


def time_pages(many: UUID, few: UUID, rounds: int) -> dict[str, dict[str, float]]:
    """Open each page of both tenants by turns; medians and 95th percentiles in milliseconds."""
    addresses = {"many": pages(many), "few": pages(few)}
    clients = {"many": client_of(many), "few": client_of(few)}
    times: dict[str, dict[str, float]] = {}
    for name in addresses["many"]:
        if name not in addresses["few"]:
            continue
        taken: dict[str, list[float]] = {"many": [], "few": []}
        for _ in range(rounds + 1):
            for side, client in clients.items():
                path = addresses[side][name]
                started = time.perf_counter()
                answer = client.get(path)
                taken[side].append(1000 * (time.perf_counter() - started))
                assert answer.status_code == 200, (path, answer.status_code)
        found = times[name] = {}
        for side in taken:
            warm = sorted(taken[side][1:])  # The first one compiles templates.
            found[f"{side} p50"] = round(statistics.median(warm), 1)
            found[f"{side} p95"] = round(warm[min(len(warm) - 1, int(0.95 * len(warm)))], 1)
        found["ratio"] = round(found["many p95"] / found["few p95"], 2)
        print(f"{name:34} {found}", flush=True)
    return times


def filled(tenant_id: UUID, messages: int, people: int) -> None:
    """Fill a tenant in a process of the owner's."""
    command = [sys.executable, "-m", "benchmarks.serving.admin", "--fill", str(tenant_id)]
    subprocess.run(
        [*command, "--messages", str(messages), "--people", str(people)],
        env={**os.environ, "KONSTRUCT_DB_ROLE": "owner"},
        check=True,
    )


def main() -> None:
    """Fill two tenants, time their pages, remove them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=500_000)
    parser.add_argument("--people", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--fill", type=UUID, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    set_up()
    if arguments.fill:
        fill(arguments.fill, arguments.messages, arguments.people)
        return
    with throwaway_tenant() as many, throwaway_tenant() as few:
        started = time.monotonic()
        filled(many, arguments.messages, arguments.people)
        filled(few, FEW, AGENTS)
        print(f"{arguments.messages:,} messages made in {time.monotonic() - started:.0f} s")
        times = time_pages(many, few, arguments.rounds)
    if arguments.json:
        arguments.json.write_text(json.dumps(times, indent=1))


if __name__ == "__main__":
    main()
