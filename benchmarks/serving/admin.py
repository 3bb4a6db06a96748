"""What each page of a tenant's admin takes with a million memories.

    python -m benchmarks.serving.admin [--memories 1000000] [--rounds 20] [--json OUT]

Rows are made by Postgres itself, a month of messages of 10,000 users with 5 agents. All vectors are
the same one and the HNSW index is left out, which no page of these uses; all else is the product's:
its other indexes, its role, its policies, its pages through Django's whole stack.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from uuid import UUID

from benchmarks.tools.throwaway import set_up, throwaway_tenant

USERS, AGENTS, THREADS = 10_000, 5, 20_000
FILL = (
    "DROP INDEX embedding_hnsw",
    """INSERT INTO orchestrator_agent (name, recall_weights)
       SELECT 'agent ' || n, '{{}}' FROM generate_series(1, {agents}) AS n""",
    """INSERT INTO memory_message (agent_id, user_id, thread_id, channel, role, content, created_at)
       SELECT (SELECT array_agg(id ORDER BY name) FROM orchestrator_agent)[1 + mod(n, {agents})],
              'user' || mod(n, {users}), 'thread' || mod(n, {threads}), 'rest',
              CASE WHEN mod(n / {threads}, 2) = 0 THEN 'user' ELSE 'assistant' END,
              'Message ' || n || ' is about harbours, lighthouses and night trains.',
              now() - interval '30 days' * (1 - n::float8 / {memories})
       FROM generate_series(1, {memories}) AS n""",
    """INSERT INTO memory_conversationembedding
           (agent_id, user_id, message_id, content, role, embedding, embedding_model, created_at)
       SELECT agent_id, user_id, id, content, role, array_fill(0.05, ARRAY[384])::vector, 'model',
              created_at
       FROM memory_message""",
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
    "ANALYZE",
)


def fill(tenant_id: UUID, memories: int) -> None:
    """Make the rows, as the owner, who may drop the index."""
    from django.db import connection

    from memory.text.lexical import lexeme_hash, stem
    from tenants.context import tenant_scope

    numbers = {"memories": memories, "users": USERS, "agents": AGENTS, "threads": THREADS}
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        for statement in FILL:
            cursor.execute(statement.format(**numbers), {"common": lexeme_hash(stem("harbours"))})


def pages(tenant_id: UUID) -> dict[str, str]:
    """The pages that are timed."""
    from konstruct.orchestrator.models import Agent
    from memory.models import Message
    from tenants.context import tenant_scope

    with tenant_scope(tenant_id):
        agent = Agent.objects.earliest("name").pk
        message = Message.objects.order_by("-number")[1000]
    person = f"agent={message.agent_id}&user={message.user_id}"
    return {
        "dashboard": "",
        "conversations": "conversations/",
        "conversations of an agent": f"conversations/?agent={agent}",
        "conversations of a user": f"conversations/?user={message.user_id}",
        "conversation": f"conversations/{message.pk}/",
        "people": "people/",
        "person": f"people/person/?user={message.user_id}",
        "window": f"window/?{person}",
        "messages": "memory/message/",
        "messages, page 100": "memory/message/?p=100",
        "messages of an agent": f"memory/message/?agent={agent}",
        "messages of a user": f"memory/message/?user={message.user_id}",
        "messages of a day": "memory/message/?created_at__gte=2000-01-01 00:00:00",
        "messages, searched": "memory/message/?q=lighthouse harbours",
        "vectors": "memory/conversationembedding/",
        "recalls": "memory/recallevent/",
        "facts": "memory/memoryentry/",
        "access log": "audit/accessevent/",
    }


def time_pages(tenant_id: UUID, host: str, rounds: int) -> dict[str, dict[str, float]]:
    """Open each page so often; medians and 95th percentiles in milliseconds."""
    from django.contrib.auth.models import User
    from django.test import Client

    from tenants.context import tenant_scope

    client = Client(headers={"Host": host})
    with tenant_scope(tenant_id):
        client.force_login(User.objects.create_superuser("benchmark"))
    times: dict[str, dict[str, float]] = {}
    for name, path in pages(tenant_id).items():
        taken = []
        for _ in range(rounds + 1):
            started = time.perf_counter()
            answer = client.get(f"/admin/{path}")
            taken.append(1000 * (time.perf_counter() - started))
            assert answer.status_code == 200, (path, answer.status_code)
        # The first one compiles templates.
        warm = sorted(taken[1:])
        p95 = warm[min(len(warm) - 1, int(0.95 * len(warm)))]
        times[name] = {"p50": round(statistics.median(warm), 1), "p95": round(p95, 1)}
        print(f"{name:28} p50 {times[name]['p50']:7.1f} ms   p95 {p95:7.1f} ms", flush=True)
    return times


def main() -> None:
    """Fill a tenant, time its pages, remove it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--fill", type=UUID, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    set_up()
    if arguments.fill:
        fill(arguments.fill, arguments.memories)
        return
    with throwaway_tenant() as tenant_id:
        started = time.monotonic()
        command = [sys.executable, "-m", "benchmarks.serving.admin", "--fill", str(tenant_id)]
        subprocess.run(
            [*command, "--memories", str(arguments.memories)],
            env={**os.environ, "KONSTRUCT_DB_ROLE": "owner"},
            check=True,
        )
        print(f"{arguments.memories:,} memories made in {time.monotonic() - started:.0f} s")
        from tenants.models import Domain

        host = Domain.objects.get(tenant_id=tenant_id).domain
        times = time_pages(tenant_id, host, arguments.rounds)
    if arguments.json:
        arguments.json.write_text(json.dumps(times, indent=1))


if __name__ == "__main__":
    main()
