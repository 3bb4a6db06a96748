"""The memory that an export of a list takes, with 500,000 messages and with 5,000.

    python -m benchmarks.serving.exports [--messages 500000]

Each export is read piece by piece in a process of its own, which has made one before. Printed is
the growth of its peak memory, and the ratio of the two.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from typing import Any
from uuid import UUID

from benchmarks.serving.today import filled
from benchmarks.tools.throwaway import set_up, throwaway_tenant

FEW = 5_000


def export(tenant_id: UUID, kind: str) -> dict[str, float]:
    """Export the messages of a tenant; return the growth of peak memory, rows and seconds."""
    from django.contrib.auth.models import User
    from django.test import Client

    from tenants.context import tenant_scope
    from tenants.models import Domain

    client: Any = Client(headers={"Host": Domain.objects.get(tenant_id=tenant_id).domain})
    with tenant_scope(tenant_id):
        client.force_login(User.objects.create_superuser(f"benchmark-{os.getpid()}"))
    address = f"/admin/memory/message/export/{kind}/"
    # What a process makes once.
    b"".join(client.get(f"{address}?from=2999-01-01").streaming_content)
    before, started = _peak(), time.perf_counter()
    size = sum(len(piece) for piece in client.get(address).streaming_content)
    return {
        "MB of growth": round((_peak() - before) / 1024, 1),
        "MB sent": round(size / 1e6, 1),
        "seconds": round(time.perf_counter() - started, 1),
    }


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measured(tenant_id: UUID, kind: str) -> dict[str, float]:
    """Export in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.serving.exports", "--of", str(tenant_id), kind]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, float] = json.loads(output.splitlines()[-1])
    return found


def main() -> None:
    """Fill a large and a small tenant, and export both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=500_000)
    parser.add_argument("--of", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    set_up()
    if arguments.of:
        print(json.dumps(export(UUID(arguments.of[0]), arguments.of[1])))
        return
    with throwaway_tenant() as large, throwaway_tenant() as small:
        filled(large, arguments.messages)
        filled(small, FEW)
        for kind in ("csv", "json"):
            many, few = measured(large, kind), measured(small, kind)
            ratio = many["MB of growth"] / max(few["MB of growth"], 0.1)
            print(f"{kind}: {arguments.messages:,} {many}, {FEW:,} {few}, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
