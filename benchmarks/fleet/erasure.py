"""Measure the cost of erasing one person as messages and cache keys grow.

    python -m benchmarks.fleet.erasure [--messages 1250,2500,5000] [--keys 500,1000,2000]
        [--others 0] [--json OUT]

For each size the script creates a user with indexed messages, in threads of ten to thirty, and
cached windows of other users. It erases each with `manage.py erase_user`. The seconds are those of
the command's steps, without its start: of rows and keys, and of files. Vectors and words are those
of benchmarks/recall/scale.py. `--others` is the number of messages of other users in the tenant,
with a recall event and a source of its prompt for each reply, but without vectors and words:

    python -m benchmarks.fleet.erasure --messages 100,100,100 --keys 0,0,0 --others 1000000
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from benchmarks.recall.scale import Language, Scope, grow
from benchmarks.tools.throwaway import PROJECT, set_up, throwaway_tenant

OTHERS_BATCH = 50_000
# Pairs of a message and its reply. The prompt of each reply has a message of another user.
ADD_OTHERS = """
    WITH pair AS (
        SELECT gen_random_uuid() AS asked, gen_random_uuid() AS reply, gen_random_uuid() AS event,
               %(agent)s::uuid AS agent_id, 'other-' || number / 50 AS user_id,
               'thread ' || number / 10 AS thread_id, 'Question ' || number AS content
        FROM generate_series(%(first)s, %(last)s) AS number
    ), asked AS (
        INSERT INTO memory_message (id, agent_id, user_id, thread_id, channel, role, content)
        SELECT asked, agent_id, user_id, thread_id, 'rest', 'user', content FROM pair
    ), replied AS (
        INSERT INTO memory_message (id, agent_id, user_id, thread_id, channel, role, content,
                                    in_reply_to_id)
        SELECT reply, agent_id, user_id, thread_id, 'rest', 'assistant', content, asked FROM pair
    ), recalled AS (
        INSERT INTO memory_recallevent (id, agent_id, user_id, reply_id, sources, packed, abstained,
                                        embedding_model, milliseconds)
        SELECT event, agent_id, user_id, reply, ARRAY[asked], '', true, '', 0 FROM pair
    )
    INSERT INTO memory_promptsource (event_id, source_id) SELECT event, gen_random_uuid() FROM pair
"""


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", default="1250,2500,5000", help="messages of the user")
    parser.add_argument("--keys", default="500,1000,2000", help="windows of others, for each")
    parser.add_argument("--others", type=int, default=0, help="messages of other users")
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.messages.split(",")]
    keys = [int(number) for number in arguments.keys.split(",")]
    set_up()
    from konstruct.orchestrator.agents import create_agent
    from memory.embedding.embedder import model_version
    from tenants.models import Tenant

    language = Language(model_version())
    report = []
    with throwaway_tenant() as tenant_id:
        slug = Tenant.objects.get(pk=tenant_id).slug
        agent_id = create_agent(tenant_id=tenant_id, name="ada").id
        add_others(tenant_id, agent_id, arguments.others)
        for size, number in zip(sizes, keys, strict=True):
            user_id = f"heavy-{size}"
            grow(tenant_id, Scope(agent_id, user_id), size, language)
            fill_cache(tenant_id, agent_id, number)
            receipt, rows, files = erase(slug, user_id)
            figures = {
                "messages": size,
                "cache_keys": number,
                "others": arguments.others,
                "seconds": {"rows": round(rows, 2), "files": round(files, 2)},
                "rows": sum(done.get("removed", 0) for done in receipt["tables"].values()),
                "storage": {name: receipt["storage"][name] for name in ("rewritten", "vacuumed")},
            }
            report.append(figures)
            print(
                f"{size:>6} messages, {number:>5} keys, {arguments.others:,} of others:"
                f" {rows:6.2f} s for {figures['rows']:,} rows, {files:6.2f} s for files",
                flush=True,
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


def fill_cache(tenant_id: UUID, agent_id: UUID, number: int) -> None:
    """Cache a window of twenty turns for the given number of other users."""
    from django_redis import get_redis_connection

    from tenants.redis_keys import memory_short_key

    pipeline = get_redis_connection("default").pipeline(transaction=False)
    for n in range(number):
        turn = json.dumps({"role": "user", "content": f"turn of other-{n}"})
        pipeline.rpush(memory_short_key(tenant_id, agent_id, f"other-{n}"), *([turn] * 20))
    pipeline.execute()


def add_others(tenant_id: UUID, agent_id: UUID, number: int) -> None:
    """Add messages of other users with their replies, 100 to a user, by statements of SQL."""
    from konstruct.local import services
    from tenants.context import connection, execute, tenant_scope
    from tenants.models import Tenant

    for first in range(0, number // 2, OTHERS_BATCH):
        last = min(first + OTHERS_BATCH, number // 2) - 1
        with tenant_scope(tenant_id):
            execute(ADD_OTHERS, {"agent": agent_id, "first": first, "last": last})
    schema = Tenant.objects.get(pk=tenant_id).schema_name
    name = connection.settings_dict["NAME"]
    with psycopg.connect(services.database_url("owner", name), autocommit=True) as owner:
        owner.execute(f"SET search_path = {schema}, public")
        owner.execute("SELECT set_config('app.current_tenant', %s, false)", [str(tenant_id)])
        owner.execute("VACUUM (ANALYZE) memory_message, memory_recallevent, memory_promptsource")


def erase(slug: str, user_id: str) -> tuple[dict[str, Any], float, float]:
    """Run the command. Return the receipt, and the seconds for rows and for files."""
    command = ("erase_user", "--tenant", slug, "--user", user_id, "--yes", "--json")
    with subprocess.Popen(
        [sys.executable, PROJECT / "manage.py", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stderr is not None
        assert run.stdout is not None
        steps = [(time.monotonic(), line.strip()) for line in run.stderr]
        receipt = run.stdout.read()
    ended = time.monotonic()
    if run.returncode:
        sys.exit(f"manage.py erase_user: {steps}")
    began, files = steps[0][0], next(at for at, line in steps if line == "writes files anew")
    return json.loads(receipt), files - began, ended - files


if __name__ == "__main__":
    main()
