"""Upgrade a deployment in the documented order while clients write, and check for losses.

    python -m benchmarks.deployment.upgrade [--revision REVISION] [--tenants 50] [--clients 8]

The version of --revision creates the tenants and serves them. Its default is the revision before
the newest migration. Two web processes run behind nginx (deploy/nginx.conf), with a worker of each
queue, beat and the owner worker. Clients of eight tenants send messages, search and erase.
Meanwhile the script follows docs/backup.md, "Upgrade and roll back", with this checkout: `backup`,
`migrate` of one tenant, `verify_memory` of that tenant, `migrate`. Then it replaces each
process.

At the end every accepted message must have one reply, every tenant must have all migrations, and
`verify_memory` must report no finding. Otherwise the exit status is 1. It is also 1 if a client got
an answer that is neither correct nor a refusal with Retry-After.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.load.deployment import A_WORKER_EACH, Layout, LoadDeployment, SlowEcho, is_ready
from benchmarks.load.traffic import SLUGS, prepare, settle, traffic
from konstruct.local.services import binaries
from tests.end_to_end.deployment import PROJECT, eventually

LAYOUT = Layout("two webs behind nginx", webs=2, workers=A_WORKER_EACH, proxy=True)
MAX_SECONDS = 1200
# Seconds for which clients run before the first step and after the last one.
AROUND_SECONDS = 20


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--revision", help="of the version that is upgraded")
    parser.add_argument("--tenants", type=int, default=50)
    parser.add_argument("--clients", type=int, default=8)
    options = parser.parse_args()
    idle = [f"idle-{number}" for number in range(options.tenants - len(SLUGS))]
    with (
        tempfile.TemporaryDirectory(prefix="konstruct-upgrade-") as folder,
        SlowEcho(0.2) as model,
    ):
        deployment = LoadDeployment(Path(folder) / "home", model, (*SLUGS, *idle))
        deployment.environment |= {
            "ERASURE_JOURNAL": str(deployment.home / "erasures.jsonl"),
            "PATH": f"{binaries()}:{os.environ['PATH']}",
        }
        (deployment.home / "erasures.jsonl").touch()
        revision = options.revision or before_the_newest_migration()
        deployment.checkout = checkout_of(revision, Path(folder) / "old")
        with deployment.running():
            with deployment.serving(replace(LAYOUT, proxy=False)):
                prepare(deployment, 8)
                for tenant in deployment.tenants:
                    tenant.send("I live in Porto.")
                settle(deployment.tenants)
            with deployment.serving(LAYOUT):
                wrong = upgrade(deployment, options.clients)
    print("\n".join(wrong) or "nothing is wrong")
    sys.exit(bool(wrong))


def upgrade(deployment: LoadDeployment, clients: int) -> list[str]:
    """Upgrade a deployment while clients use it. Return the violations."""
    ended = threading.Event()
    with traffic(deployment, users=clients, seconds=MAX_SECONDS, until=ended) as done:
        time.sleep(AROUND_SECONDS)
        deployment.checkout = PROJECT
        step(deployment, "backup", str(deployment.home / "backups"))
        step(deployment, "migrate", "--shared")
        canary = deployment.tenants[0].slug
        step(deployment, "migrate", "--schema", canary)
        step(deployment, "verify_memory", "--tenant", canary)
        step(deployment, "migrate")
        roll(deployment)
        time.sleep(AROUND_SECONDS)
        ended.set()
    (run,) = done
    print(f"{run.accepted} messages accepted, {run.answered} answered, {run.resent} sent again")
    for name, call in sorted(run.calls.items()):
        print(f"  {name}: {call}")
    wrong = [f"{count} × {what}" for what, count in {**run.losses, **run.violations}.items()]
    for ledger in json.loads(deployment.manage("verify_memory", "--json", **deployment.owner)):
        wrong += [f"verify_memory: {finding}" for finding in ledger["findings"]]
    if deployment.manage("migrate", **deployment.owner).count("\n") > 2:
        wrong.append("migrations were left")
    return wrong


def step(deployment: LoadDeployment, *arguments: str, status: int = 0) -> str:
    """Run a command of the new version. Print its duration, and return its output."""
    began = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT,
        env={**deployment.environment, **deployment.owner, "PLAIN_HTTP": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode != status:
        sys.exit(f"{' '.join(arguments)}: {ran.stdout}{ran.stderr}")
    print(f"{' '.join(arguments)}: {time.monotonic() - began:.1f} s", flush=True)
    return ran.stdout


def roll(deployment: LoadDeployment) -> None:
    """Replace the processes one by one: web processes, workers, beat, and last the owner worker."""
    began = time.monotonic()
    for name, process in deployment.processes.items():
        process.replace(PROJECT)
        if name in deployment.ports:
            eventually(partial(is_ready, deployment.ports[name]), f"{name} is not ready")
    print(
        f"{len(deployment.processes)} processes replaced: {time.monotonic() - began:.1f} s",
        flush=True,
    )


def before_the_newest_migration() -> str:
    """Return the newest revision that lacks a migration of this checkout."""
    command = ["git", "log", "-1", "--diff-filter=A", "--format=%H", "--", "*/migrations/0*.py"]
    ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    return f"{ran.stdout.strip()}^"


def checkout_of(revision: str, folder: Path) -> Path:
    """Write the files of a revision into a folder."""
    folder.mkdir()
    command = ["git", "archive", revision]
    archive = subprocess.run(command, cwd=PROJECT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)  # noqa: S607
    return folder


if __name__ == "__main__":
    main()
