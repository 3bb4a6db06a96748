"""Measure the memory of a list export, with 500,000 messages and with 5,000.

    python -m benchmarks.serving.exports [--messages 500000]

Each export is read piece by piece in its own process, after a first export. The script prints the
growth of its peak memory, and the ratio of the two.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from benchmarks.serving.admin import client_of
from benchmarks.serving.today import filled
from benchmarks.tools.throwaway import set_up, throwaway_tenant

FEW = 5_000
MESSAGES = "/admin/memory/message/export/"


def export(tenant_id: UUID, address: str) -> dict[str, float]:
    """Export from a page. Return the growth of peak memory, the size and the seconds.

    The rows of a list are written by a job; the page of a person sends its data itself.
    """
    client = client_of(tenant_id)
    # Memory that a process allocates once.
    sum(map(len, _file_of(client, tenant_id, f"{MESSAGES}?from=2999-01-01")))
    before, started = _peak(), time.perf_counter()
    size = sum(map(len, _file_of(client, tenant_id, address)))
    return {
        "MB of growth": round((_peak() - before) / 1024, 1),
        "MB sent": round(size / 1e6, 1),
        "seconds": round(time.perf_counter() - started, 1),
    }


def _file_of(client: Any, tenant_id: UUID, address: str) -> Iterator[bytes]:
    from tenants.admin.exports import write_file
    from tenants.context import tenant_scope

    answer = client.post(address)
    if "/person/" not in address:
        export_id = UUID(answer["Location"].split("/")[-2])
        with tenant_scope(tenant_id):
            write_file(export_id)
        answer = client.get(f"/admin/exports/{export_id}/download/")
    pieces: Iterator[bytes] = answer.streaming_content
    return pieces


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measured(tenant_id: UUID, address: str) -> dict[str, float]:
    """Export in a separate process."""
    command = [sys.executable, "-m", "benchmarks.serving.exports", "--of", str(tenant_id), address]
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
        many, few = measured(large, MESSAGES), measured(small, MESSAGES)
        ratio = many["MB of growth"] / max(few["MB of growth"], 0.1)
        print(f"{arguments.messages:,} {many}, {FEW:,} {few}, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
