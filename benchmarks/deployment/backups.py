"""Measure the time of `manage.py backup` and `restore --all`, and the size of a backup.

    python -m benchmarks.deployment.backups [--tenants 50] [--messages 1000] [--parallel 1,2]

The script starts a deployment with its own Postgres and Valkey, beside KONSTRUCT_HOME, and creates
the tenants. Each tenant has messages of five users with vectors, as benchmarks/recall/scale.py
creates them. Every tenth tenant has ten times as many. After the backup a user of every second
tenant is erased. Then three restores are timed: all tenants over the existing ones, one tenant
alone, and all tenants with the operators into an empty deployment.

After each restore, all tenants must be served, `verify_memory` must report no finding, and no
message of an erased user may exist. Otherwise the exit status is 1. The times include the start of
the command, which takes about two seconds.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.tools.throwaway import PROJECT
from tests.konstruct.backups.deployment import Deployment, deployment

ERASED = "erased"
# Creates tenants with the same messages in each run.
FILL = f"""
import sys
import django
django.setup()
from benchmarks.recall.scale import Language, Scope, grow
from konstruct.orchestrator.agents import create_agent
from memory.embedding.embedder import model_version
from tenants.schemas.provisioning import create_tenant
tenants, messages = map(int, sys.argv[1:])
language = Language(model_version())
for number in range(tenants):
    tenant = create_tenant(slug=f"tenant-{{number}}")
    agent = create_agent(tenant_id=tenant.id, name="ada")
    count = messages * (10 if number % 10 == 9 else 1)
    for user in ("{ERASED}", "ben", "cleo", "dora", "emil"):
        grow(tenant.id, Scope(agent.id, user), count // 5, language)
"""
# Erases a user of every second tenant with the owner worker.
ERASE = f"""
import sys
import django
django.setup()
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.privacy import jobs
from tenants.audit.access_log import Actor
from tenants.context import tenant_scope
from tenants.models import Tenant
for tenant in Tenant.objects.order_by("slug")[::2]:
    with tenant_scope(tenant.id):
        request_erasure("{ERASED}", by=Actor.operator("benchmark"))
for job in jobs.JOBS:
    job.run_due()
"""


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tenants", type=int, default=50)
    parser.add_argument("--messages", type=int, default=1000, help="of most tenants")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="konstruct-backups-") as folder:
        journal = Path(folder) / "erasures.jsonl"
        journal.touch()
        with deployment("benchmark", journal) as running:
            made = measure(running, Path(folder), options)
            running.stop()
            with deployment("benchmark-new", journal) as new:
                restore(new, made, "into an empty deployment", "--all")
            running.start()


def measure(running: Deployment, folder: Path, options: argparse.Namespace) -> Path:
    """Back up and restore the tenants of a deployment. Return the backup."""
    run(running, FILL, options.tenants, options.messages)
    ((rows,),) = running.ask(f"SELECT {_sum_over(running, 'memory_message')}")
    ((size,),) = running.ask("SELECT pg_database_size(current_database())")
    print(
        f"{options.tenants} tenants, {rows:,} messages, {int(str(size)) / 1e6:,.0f} MB in Postgres"
    )
    seconds, output = timed(running, "backup", folder / "backups")
    made = Path(output.partition(":")[0])
    size = sum(path.stat().st_size for path in made.iterdir())
    print(f"backup: {seconds:.1f} s, {size / 1e6:,.1f} MB", flush=True)
    print(f"verify_backup: {timed(running, 'verify_backup', made)[0]:.1f} s", flush=True)
    run(running, ERASE)
    restore(running, made, "all tenants", "--all", "--again")
    restore(running, made, "one tenant", "--tenant", "tenant-0")
    restore(running, made, "one tenant of ten times the size", "--tenant", "tenant-9")
    return made


def restore(running: Deployment, made: Path, name: str, *arguments: str) -> None:
    """Restore tenants, and check the result."""
    seconds, output = timed(running, "restore", made, *arguments, "--yes")
    erasures = sum(map(int, re.findall(r"(\d+) erasures repeated", output)))
    print(f"restore, {name}: {seconds:.1f} s, {erasures} erasures repeated", flush=True)
    verified = json.loads(running.manage("verify_memory", "--json"))
    wrong = [
        f"{report['tenant']}: {len(report['findings'])}"
        for report in verified
        if report["findings"]
    ]
    wrong += [f"{slug} is {state}" for slug, state in running.states().items() if state != "active"]
    of_erased = _sum_over(
        running, "memory_message", f"WHERE user_id = '{ERASED}'", slice(0, None, 2)
    )
    ((left,),) = running.ask(f"SELECT {of_erased}")
    if left:
        wrong.append(f"{left} messages of erased users are back")
    if wrong:
        sys.exit("\n".join(wrong))


def timed(running: Deployment, *arguments: object) -> tuple[float, str]:
    """Run a command. Return its seconds and its output."""
    began = time.monotonic()
    output = running.manage(*arguments)
    return time.monotonic() - began, output


def run(running: Deployment, code: str, *arguments: object) -> None:
    """Run code as the owner role."""
    subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=PROJECT,
        env={**running.environment, "KONSTRUCT_DB_ROLE": "owner", "LOG_LEVEL": "WARNING"},
        check=True,
    )


def _sum_over(running: Deployment, table: str, where: str = "", of: slice = slice(None)) -> str:
    """Return an SQL expression that counts the rows of a table in these tenants."""
    schemas = [
        schema for (schema,) in running.ask("SELECT schema_name FROM tenants_tenant ORDER BY slug")
    ]
    return " + ".join(f"(SELECT count(*) FROM {schema}.{table} {where})" for schema in schemas[of])


if __name__ == "__main__":
    main()
