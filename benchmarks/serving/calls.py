"""Count Python function calls and messages to Postgres of a request.

    python -m benchmarks.serving.calls REVISION [REVISION …]

Each revision is checked out, gets an embedded Postgres with its own tenant, and answers the same
requests in one thread, with the packages of this environment. The counts are of one request, the
median of `ROUNDS`. They compare revisions independently of the load of the machine.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg

PROJECT = Path(__file__).resolve().parents[2]
PLACE = PROJECT / ".konstruct" / "calls"
ROUNDS = 15


def main() -> None:
    """Count revision by revision, and compare each with the one before it."""
    if sys.argv[1:] == ["--here"]:
        print(json.dumps(count()))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revisions", nargs="+", metavar="REVISION", help="as git names it")
    before: dict[str, list[float]] = {}
    for revision in parser.parse_args().revisions:
        found = of(revision)
        for kind, figures in found.items():
            ratios = [a / b for a, b in zip(figures, before.get(kind, figures), strict=True)]
            calls, messages = figures
            print(
                f"{revision} {kind:6} {calls:8,.0f} calls ({ratios[0]:.3f}), {messages:.0f}"
                f" messages to Postgres ({ratios[1]:.3f})",
                flush=True,
            )
        before = found


def of(revision: str) -> dict[str, list[float]]:
    """Check a revision out, and count there."""
    root = PLACE / revision
    git = [shutil.which("git") or "git", "-C", str(PROJECT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(root), revision], check=True)
    environment = {**os.environ, "KONSTRUCT_HOME": str(root / ".konstruct"), "LOG_LEVEL": "ERROR"}
    try:
        manage = [sys.executable, "manage.py"]
        for command in (["migrate"], ["create_tenant", "acme"]):
            subprocess.run(
                [*manage, *command], cwd=root, env=environment, check=True, capture_output=True
            )
        run = subprocess.run(
            [sys.executable, __file__, "--here"],
            cwd=root,
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        found: dict[str, list[float]] = json.loads(run.stdout)
        return found
    finally:
        subprocess.run([*git, "remove", "--force", str(root)], check=False)
        shutil.rmtree(root, ignore_errors=True)


def count() -> dict[str, list[float]]:
    """Count calls and messages of each kind of request, in this process and this revision."""
    sys.path[0] = str(Path.cwd())
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "konstruct.settings")
    import django

    django.setup()
    from django.db import close_old_connections
    from django.test import Client

    from konstruct.api.auth.keys import issue_key
    from konstruct.local import embedded
    from konstruct.orchestrator.agents import create_agent
    from tenants.context import tenant_scope
    from tenants.models import Tenant

    embedded.ensure()
    tenant = Tenant.objects.get(slug="acme")
    with tenant_scope(tenant.id):
        create_agent(tenant_id=tenant.id, name="Ada")
        _, key = issue_key(tenant_id=tenant.id, name="calls")
    headers = {"host": "localhost", "authorization": f"Bearer {key}"}
    client = Client(headers=headers)
    messages = 0
    wait = psycopg.Connection.wait

    def waited(self: Any, *args: Any) -> Any:
        nonlocal messages
        messages += 1
        return wait(self, *args)

    psycopg.Connection.wait = waited  # type: ignore[assignment,method-assign]
    body = {"agent": "Ada", "user_id": "ann", "content": "hello"}
    requests = {
        "list": lambda: client.get("/api/v1/agents/"),
        "read": lambda: client.get("/api/v1/messages/?agent=Ada&user_id=ann"),
        "send": lambda: client.post("/api/v1/messages/", body, content_type="application/json"),
    }
    found = {}
    for kind, ask in requests.items():
        rounds = []
        for number in range(ROUNDS + 5):
            close_old_connections()
            calls, messages = 0, 0

            def called(frame: object, event: str, argument: object) -> None:
                nonlocal calls
                calls += event in ("call", "c_call")

            sys.setprofile(called)
            answer = ask()
            sys.setprofile(None)
            assert answer.status_code < 300, answer.content
            if number >= 5:  # code that is loaded or cached at first use
                rounds.append((calls, messages))
        found[kind] = [statistics.median(times) for times in zip(*rounds, strict=True)]
    return found


if __name__ == "__main__":
    main()
