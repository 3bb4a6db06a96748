"""Measure for how long a tenant is held while it is moved to another server, by its size.

    python -m benchmarks.fleet.moving [--messages 1000 10000 50000]

A second Postgres runs beside the embedded one. A tenant grows to each number of messages, as
benchmarks/recall/scale.py creates them with their vectors and words, and is moved to the other
server. `move_tenant` itself compares all rows.
"""

import argparse
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock
from uuid import uuid4

from benchmarks.recall.scale import Language, Scope, grow
from benchmarks.tools.throwaway import PROJECT, set_up, throwaway_tenant

USE = "from konstruct.local import embedded; embedded.ensure_postgres(); print('up'); input()"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, nargs="+", default=[1_000, 10_000, 50_000])
    arguments = parser.parse_args()
    with second_server():
        set_up()
        measure(sorted(arguments.messages))


@contextlib.contextmanager
def second_server() -> Iterator[None]:
    """Start another embedded Postgres, called eu1 in the environment of all processes."""
    from konstruct.local import services

    beside = Path(f"{services.home()}-eu1")
    server = subprocess.Popen(
        [sys.executable, "-u", "-c", USE],
        cwd=PROJECT,
        env={**os.environ, "KONSTRUCT_HOME": str(beside)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == "up\n"
    with mock.patch.dict(os.environ, KONSTRUCT_HOME=str(beside)):
        urls = {role: services.database_url(role) for role in ("app", "owner")}
    os.environ["TENANT_DATABASES"] = f"eu1={urls['app']}"
    os.environ["TENANT_DATABASES_OWNER"] = f"eu1={urls['owner']}"
    try:
        yield
    finally:
        server.communicate("\n")


def measure(sizes: Sequence[int]) -> None:
    """Grow a tenant, and move it at each size; print what the command reports."""
    with throwaway_tenant() as tenant_id:
        from memory.embedding.embedder import model_version
        from tenants.models import Tenant

        language, scope, messages = Language(model_version()), Scope(uuid4(), "the-one"), 0
        for size in sizes:
            grow(tenant_id, scope, size - messages, language)
            messages = size
            tenant = Tenant.objects.get(id=tenant_id)
            there = "eu1" if tenant.server == "default" else "default"
            print(f"{size:,} messages", flush=True)
            command = [sys.executable, PROJECT / "manage.py", "move_tenant", tenant.slug]
            subprocess.run([*command, "--to", there], check=True)


if __name__ == "__main__":
    main()
