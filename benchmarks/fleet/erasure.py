"""Measure the cost of erasing one person as messages and cache keys grow.

    python -m benchmarks.fleet.erasure [--messages 1250,2500,5000] [--keys 500,1000,2000]
        [--json OUT]

For each size the script creates a user with indexed messages, in threads of ten to thirty, and
cached windows of other users. It erases each with `manage.py erase_user`. The seconds are those of
the receipt, without the start of the command. Vectors and words are those of
benchmarks/recall/scale.py.
"""

import argparse
import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks.recall.scale import Language, Scope, grow
from benchmarks.tools.throwaway import PROJECT, set_up, throwaway_tenant


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", default="1250,2500,5000", help="messages of the user")
    parser.add_argument("--keys", default="500,1000,2000", help="windows of others, for each")
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
        for size, number in zip(sizes, keys, strict=True):
            user_id = f"heavy-{size}"
            grow(tenant_id, Scope(agent_id, user_id), size, language)
            fill_cache(tenant_id, agent_id, number)
            receipt = erase(slug, user_id)
            seconds = seconds_of(receipt)
            figures = {
                "messages": size,
                "cache_keys": number,
                "seconds": round(seconds, 2),
                "rows": sum(done.get("removed", 0) for done in receipt["tables"].values()),
                "storage": {name: receipt["storage"][name] for name in ("rewritten", "vacuumed")},
            }
            report.append(figures)
            print(
                f"{size:>6} messages, {number:>5} keys: {seconds:6.1f} s, {figures['rows']:,} rows",
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


def erase(slug: str, user_id: str) -> dict[str, Any]:
    """Run the command. Return the receipt."""
    command = ("erase_user", "--tenant", slug, "--user", user_id, "--yes", "--json")
    run = subprocess.run(
        [sys.executable, PROJECT / "manage.py", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        sys.exit(f"manage.py erase_user: {run.stderr or run.stdout}")
    receipt: dict[str, Any] = json.loads(run.stdout)
    return receipt


def seconds_of(receipt: dict[str, Any]) -> float:
    """Return the duration of an erasure."""
    began, ended = (datetime.fromisoformat(receipt[name]) for name in ("began_at", "ended_at"))
    return (ended - began).total_seconds()


if __name__ == "__main__":
    main()
