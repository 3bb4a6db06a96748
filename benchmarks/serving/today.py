"""Time the charts of Today with 500,000 messages, with all days counted and with ended days.

    python -m benchmarks.serving.today [--messages 500000] [--rounds 20]

Postgres fills two tenants, one with --messages and one with 500: 60 days of messages with replies,
recall events, and prompts of 2 kB. The script prints the times of the query without
`DailyActivity`, of the first count of all days, and of the page, and the ratio of the pages.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from benchmarks.tools.throwaway import set_up, throwaway_tenant

AGENTS, CHANNELS, FEW = 5, 2, 500
FILL = (
    "DROP INDEX IF EXISTS embedding_hnsw",
    """INSERT INTO orchestrator_agent (name, recall_weights)
       SELECT 'agent ' || n, '{{}}' FROM generate_series(1, {agents}) AS n""",
    """INSERT INTO memory_message
           (id, agent_id, user_id, thread_id, channel, role, content, created_at)
       SELECT md5('m' || n)::uuid,
              (SELECT array_agg(id ORDER BY name) FROM orchestrator_agent)[1 + mod(n, {agents})],
              'user' || mod(n, 5000), 'thread' || mod(n, 9000),
              (ARRAY['rest', 'slack'])[1 + mod(n / 7, {channels})], 'user',
              'Message ' || n || ' is about harbours, lighthouses and night trains.',
              now() - interval '60 days' * (1 - n::float8 / {half})
       FROM generate_series(1, {half}) AS n""",
    """INSERT INTO memory_message (agent_id, user_id, thread_id, channel, role, content, created_at,
                                   in_reply_to_id, usage)
       SELECT agent_id, user_id, thread_id, channel, 'assistant', 'Reply to: ' || content,
              created_at + interval '1 second' * (1 + mod(number, 40)), id,
              '{{"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960}}'
       FROM memory_message""",
    """INSERT INTO memory_recallevent (agent_id, user_id, reply_id, packed, hit_count, fact_count,
           turn_count, abstained, embedding_model, milliseconds, created_at)
       SELECT agent_id, user_id, id, convert_to((
                  SELECT string_agg(md5(number::text || i), ' ')
                  FROM generate_series(1, 60) AS i), 'UTF8'),
              mod(number, 3), mod(number, 2), mod(number, 5), false, 'model', 4, created_at
       FROM memory_message WHERE role = 'assistant'""",
    "ANALYZE",
)


def fill(tenant_id: UUID, messages: int) -> None:
    """Create the rows as the owner."""
    from django.db import connection

    from tenants.context import tenant_scope

    numbers = {"half": messages // 2, "agents": AGENTS, "channels": CHANNELS}
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        for statement in FILL:
            cursor.execute(statement.format(**numbers))


def filled(tenant_id: UUID, messages: int) -> None:
    """Fill a tenant in a process of the owner."""
    command = [sys.executable, "-m", "benchmarks.serving.today", "--fill", str(tenant_id)]
    subprocess.run(
        [*command, "--messages", str(messages)],
        env={**os.environ, "KONSTRUCT_DB_ROLE": "owner"},
        check=True,
    )


def milliseconds(act: Callable[[], object], rounds: int) -> dict[str, float]:
    """Time a function. Return the median and the 95th percentile."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        act()
        times.append(1000 * (time.perf_counter() - started))
    cut = sorted(times)[min(len(times) - 1, int(0.95 * len(times)))]
    return {"p50": round(statistics.median(times), 1), "p95": round(cut, 1)}


def measure(tenant_id: UUID, rounds: int) -> dict[str, dict[str, float]]:
    """Time the query, the first count, and the page."""
    from django.contrib.auth.models import User
    from django.test import Client

    from konstruct.orchestrator import activity
    from tenants.context import tenant_scope
    from tenants.models import Domain

    today = datetime.now(UTC).date()
    first = today - timedelta(days=59)
    client = Client(headers={"Host": Domain.objects.get(tenant_id=tenant_id).domain})
    with tenant_scope(tenant_id):
        client.force_login(User.objects.create_superuser("benchmark"))
        direct = milliseconds(lambda: activity._count_messages(first, today), 3)
        days = [first + timedelta(days=number) for number in range(59)]
        activity.MAX_COUNTING_SECONDS = 600
        once = milliseconds(lambda: activity.count_days(days), 1)
        read = milliseconds(
            lambda: activity.activity(first=today - timedelta(days=29), last=today), rounds
        )
    client.get("/admin/")
    page = milliseconds(lambda: client.get("/admin/").content, rounds)
    return {"60 days at once": direct, "first count": once, "30 days by day": read, "Today": page}


def main() -> None:
    """Fill a large and a small tenant, and time both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--fill", type=UUID, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    set_up()
    if arguments.fill:
        fill(arguments.fill, arguments.messages)
        return
    with throwaway_tenant() as large, throwaway_tenant() as small:
        filled(large, arguments.messages)
        filled(small, FEW)
        found = {"many": measure(large, arguments.rounds), "few": measure(small, arguments.rounds)}
        print(json.dumps(found, indent=1))
        ratio = found["many"]["Today"]["p95"] / found["few"]["Today"]["p95"]
        print(f"Today, p95 with many / with few: {ratio:.2f}")


if __name__ == "__main__":
    main()
