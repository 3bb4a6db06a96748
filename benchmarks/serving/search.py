"""Measure the search over all people of a tenant, by the size of the tenant.

    python -m benchmarks.serving.search [--memories 500000] [--people 5000] [--rounds 40]

Postgres creates the rows: each message has 15 words of a vocabulary of 20,000, most of them common,
and one vector near one of 300 topics. Indexes with HNSW, role and policies are those of the
product. The first tenant has 500 messages of 5 people.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from datetime import timedelta
from typing import Any
from uuid import UUID

from benchmarks.tools.throwaway import set_up, throwaway_tenant

AGENTS, TOPICS, VOCABULARY, WORDS = 5, 300, 20_000, 15
FILL = (
    "SET maintenance_work_mem = '1GB'",
    "DROP INDEX embedding_hnsw",
    """INSERT INTO orchestrator_agent (name, recall_weights)
       SELECT 'agent ' || n, '{{}}' FROM generate_series(1, {agents}) AS n""",
    """INSERT INTO memory_message (agent_id, user_id, thread_id, channel, role, content, created_at)
       SELECT (SELECT array_agg(id ORDER BY name) FROM orchestrator_agent)[1 + mod(n, {agents})],
              'user' || mod(n / {agents}, {people}), 'thread' || mod(n / {agents}, {people}),
              CASE WHEN mod(n, 3) = 0 THEN 'slack' ELSE 'rest' END,
              CASE WHEN mod(n, 2) = 0 THEN 'user' ELSE 'assistant' END,
              'w' || mod(n, 20000) || ' is what message ' || n || ' is about.',
              now() - interval '365 days' * (1 - n::float8 / {memories})
       FROM generate_series(1, {memories}) AS n""",
    """INSERT INTO memory_scope (id, agent_id, user_id)
       SELECT row_number() OVER (), agent_id, user_id
       FROM (SELECT DISTINCT agent_id, user_id FROM memory_message) AS known""",
    """INSERT INTO memory_indexedmessage (message_number, scope_id, message_id, session, created_at,
                                          subject, by_user, words, has_time)
       SELECT message.number, scope.id, message.id, 1, created_at, 1, true, 15, false
       FROM memory_message AS message JOIN memory_scope AS scope USING (agent_id, user_id)""",
    """INSERT INTO memory_posting (scope_id, lexeme_hash, message_number, weight)
       SELECT scope_id, (%(vocabulary)s::bigint[])[1 + floor(20000 * random() ^ 3)],
              message_number, 1
       FROM memory_indexedmessage, generate_series(1, 15)
       ON CONFLICT DO NOTHING""",
    """CREATE TEMPORARY TABLE topic AS
       SELECT n, (SELECT array_agg(random() - .5) FROM generate_series(n * 0 + 1, 384))::vector AS v
       FROM generate_series(0, 299) AS n""",
    """INSERT INTO memory_conversationembedding
           (agent_id, user_id, message_id, content, role, embedding, embedding_model, created_at)
       SELECT agent_id, user_id, id, content, role,
              v + (SELECT array_agg(random() - .5) FROM generate_series(mod(number, 1) + 1, 384)
                  )::vector,
              %(model)s, created_at
       FROM memory_message JOIN topic ON n = mod(number, 300)""",
    """CREATE INDEX embedding_hnsw ON memory_conversationembedding
       USING hnsw (embedding vector_cosine_ops) WITH (m = 16, ef_construction = 64)""",
    "ANALYZE",
)


def fill(tenant_id: UUID, memories: int, people: int) -> None:
    """Create the rows as the owner, which may rebuild the index."""
    from django.db import connection

    from memory.embedding.embedder import model_version
    from memory.text.lexical import lexeme_hash
    from tenants.context import tenant_scope

    numbers = {"memories": memories, "people": people, "agents": AGENTS}
    values: dict[str, Any] = {
        "vocabulary": [lexeme_hash(f"w{number}") for number in range(VOCABULARY)],
        "model": model_version(),
    }
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        for statement in FILL:
            started = time.monotonic()
            cursor.execute(statement.format(**numbers), values if "%(" in statement else None)
            print(f"{time.monotonic() - started:6.1f} s  {statement[:60]!r}", flush=True)


def time_searches(tenant_id: UUID, rounds: int) -> None:
    """Search in each way. Return medians and 95th percentiles in milliseconds."""
    from django.utils import timezone

    from konstruct.orchestrator.models import Agent
    from memory.browse.search import MessageFilter, search_messages
    from tenants.context import tenant_scope

    with tenant_scope(tenant_id):
        agent = Agent.objects.earliest("name").pk
        month = timezone.now() - timedelta(days=30)
        for name, query, narrowed in (
            ("a rare and a common word", "w{rare} w{common}", {}),
            ("five words", "w{rare} w{common} w12 w345 w6789", {}),
            ("a common word", "w{common}", {}),
            ("meaning alone", "sick child", {}),
            ("of a person", "w{rare} w{common}", {"user_id": "user3"}),
            ("of an agent", "w{rare} w{common}", {"agent_id": agent}),
            ("of a channel, in a month", "w{rare} w{common}", {"since": month, "channel": "slack"}),
        ):
            times = []
            for number in range(rounds + 1):
                text = query.format(rare=15_000 + 7 * number, common=number)
                started = time.perf_counter()
                found = search_messages(text, message_filter=MessageFilter(**narrowed))
                times.append(1000 * (time.perf_counter() - started))
                assert not found.is_partial, text
            warm = sorted(times[1:])
            p95 = warm[min(len(warm) - 1, int(0.95 * len(warm)))]
            print(
                f"{name:26} p50 {statistics.median(warm):7.1f} ms   p95 {p95:7.1f} ms", flush=True
            )


def main() -> None:
    """Fill a small and a large tenant, search in them, and remove them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=500_000)
    parser.add_argument("--people", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--fill", type=UUID, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    set_up()
    if arguments.fill:
        fill(arguments.fill, arguments.memories, arguments.people)
        return
    for memories, people in ((500, 5), (arguments.memories, arguments.people)):
        with throwaway_tenant() as tenant_id:
            command = [sys.executable, "-m", "benchmarks.serving.search", "--fill", str(tenant_id)]
            subprocess.run(
                [*command, "--memories", str(memories), "--people", str(people)],
                env={**os.environ, "KONSTRUCT_DB_ROLE": "owner"},
                check=True,
            )
            print(f"{memories:,} messages of {people:,} people")
            time_searches(tenant_id, arguments.rounds)


if __name__ == "__main__":
    main()
