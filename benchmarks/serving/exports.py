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
from uuid import UUID

from benchmarks.serving.admin import client_of
from benchmarks.serving.today import filled
from benchmarks.tools.throwaway import set_up, throwaway_tenant

FEW = 5_000
MESSAGES = "/admin/memory/message/export/{}/"


def export(tenant_id: UUID, address: str) -> dict[str, float]:
    """Export from a page. Return the growth of peak memory, the size and the seconds.

    The page of a person exports by a POST.
    """
    client = client_of(tenant_id)
    # Memory that a process allocates once.
    b"".join(client.get(f"{MESSAGES.format('csv')}?from=2999-01-01").streaming_content)
    before, started = _peak(), time.perf_counter()
    answer = client.post(address) if "/person/" in address else client.get(address)
    size = sum(len(piece) for piece in answer.streaming_content)
    return {
        "MB of growth": round((_peak() - before) / 1024, 1),
        "MB sent": round(size / 1e6, 1),
        "seconds": round(time.perf_counter() - started, 1),
    }


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
        for kind in ("csv", "json"):
            address = MESSAGES.format(kind)
            many, few = measured(large, address), measured(small, address)
            ratio = many["MB of growth"] / max(few["MB of growth"], 0.1)
            print(f"{kind}: {arguments.messages:,} {many}, {FEW:,} {few}, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
