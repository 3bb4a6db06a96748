"""How many messages are lost, doubled or crossed while processes are killed, for a long time.

    python -m benchmarks.survival [--minutes 30] [--seed N] [--pause SECONDS]

It runs a deployment of its own in a temporary home, and touches no other. The seed is printed: the
same one draws the same faults.
"""

import argparse
import secrets
import sys
import tempfile
from pathlib import Path

from tests.survival import harness


def main() -> None:
    """Run it, print the figures, and exit with 1 if anything is not as it must be."""
    parser = argparse.ArgumentParser(description="Messages under faults.")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--pause", type=float, default=0.3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="konstruct-survival-") as home:
        report = harness.run(
            Path(home) / "home", seed=options.seed, minutes=options.minutes, pause=options.pause
        )
    for fault, times in sorted(report.faults.items()):
        print(f"{times:4} × {fault}")
    print(report)
    sys.exit(bool(report.lost or report.duplicated or report.crossed))


if __name__ == "__main__":
    main()
