"""Time the operators' pages with 1,000 tenants and with 10.

    python -m benchmarks.fleet.operators [--tenants 1000] [--rounds 40] [--keep]

The script creates two databases in the embedded Postgres, and prints the times of each page in
both, in milliseconds.
"""

import argparse
import json
import os
import subprocess
import sys
from functools import partial
from itertools import islice
from typing import Any
from uuid import uuid4

from benchmarks.fleet.by_the_hundred import DATABASE, DATABASE_OF_FEW, fleet_databases, make_tenants
from benchmarks.fleet.serving import environment_of
from benchmarks.serving.today import milliseconds
from benchmarks.tools.throwaway import manage, set_up

FEW = 10
# Rounds for the whole file, which takes seconds.
CSV_ROUNDS = 3


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Time the pages."""
    from django.contrib.auth.models import User
    from django.test import Client

    from tenants.models import Tenant

    client = Client(headers={"Host": "localhost"})
    client.force_login(User.objects.create_superuser(f"benchmark-{uuid4()}"))
    tenants = "/admin/tenants/tenant/"
    last = (Tenant.objects.count() - 1) // 50 + 1
    pages = {
        "home": "/admin/",
        "list": tenants,
        "last page": f"{tenants}?p={last}",
        "search": f"{tenants}?q=fleet-a",
        "tenant": f"{tenants}{Tenant.objects.earliest('created_at').pk}/change/",
    }
    found: dict[str, dict[str, float]] = {}
    for name, path in pages.items():
        assert client.get(path).status_code == 200, path
        found[name] = milliseconds(partial(client.get, path), rounds)
    # The days of each tenant, sent when they are read.
    found["usage as CSV, two lines"] = milliseconds(partial(read_csv, client, 2), CSV_ROUNDS)
    found["usage as CSV"] = milliseconds(partial(read_csv, client, None), CSV_ROUNDS)
    return found


def read_csv(client: Any, lines: int | None) -> int:
    """Read some lines, or all, of the usage of all tenants. Return their number."""
    answer = client.get("/admin/usage/?csv=1")
    found = sum(1 for _ in islice(answer.streaming_content, lines))
    answer.close()
    return found


def main() -> None:
    """Create the tenants, and time both databases."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tenants", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--keep", action="store_true", help="leave the databases")
    parser.add_argument("--make", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    set_up()
    if options.make:
        manage("migrate")
        make_tenants(options.make)
        return
    if options.measure:
        print(json.dumps(measure(options.rounds)))
        return
    with fleet_databases(keep=options.keep):
        few = _in(DATABASE_OF_FEW, FEW, options.rounds)
        many = _in(DATABASE, options.tenants, options.rounds)
    for name in few:
        ratio = many[name]["p95"] / few[name]["p95"]
        print(f"{name}: {FEW} tenants {few[name]}, {options.tenants} {many[name]}: {ratio:.2f}")


def _in(database: str, tenants: int, rounds: int) -> Any:
    """Fill a database as the owner, and measure it as the application."""
    command = [sys.executable, "-m", "benchmarks.fleet.operators", "--rounds", str(rounds)]
    environment = {**os.environ, **environment_of(database)}
    owner = {**environment, "KONSTRUCT_DB_ROLE": "owner"}
    subprocess.run([*command, "--make", str(tenants)], env=owner, check=True)
    ran = subprocess.run(
        [*command, "--measure"], env=environment, check=True, stdout=subprocess.PIPE
    )
    return json.loads(ran.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
