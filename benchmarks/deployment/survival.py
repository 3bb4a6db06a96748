"""Count lost, duplicated and misdirected messages while processes are killed, for a long time.

    python -m benchmarks.deployment.survival [--minutes 30] [--seed N] [--pause SECONDS]
    python -m benchmarks.deployment.survival --messages 1000 --faults 50

The script runs its own deployment in a temporary home. It prints the seed; the same seed draws the
same faults.
"""

import argparse
import secrets
import sys
import tempfile
from pathlib import Path

from tests.survival import harness
from tests.survival.faults import FAULTS


def main() -> None:
    """Run the benchmark, print the figures, and exit with 1 after any violation."""
    parser = argparse.ArgumentParser(description="Messages under faults.")
    parser.add_argument("--minutes", type=float, help="at least so long; by default 5")
    parser.add_argument("--messages", type=int, help="all users together, instead of --minutes")
    parser.add_argument("--faults", type=int, default=0, help="minimum, with every kind once")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--pause", type=float, default=0.3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="konstruct-survival-") as home:
        users = len(harness.SLUGS) * len(harness.USERS)
        report = harness.run(
            Path(home) / "home",
            seed=options.seed,
            drawn=max(0, options.faults - len(FAULTS)),
            minutes=options.minutes or (0 if options.messages else 5),
            pause=options.pause,
            messages=options.messages and -(-options.messages // users),
        )
    for fault, times in sorted(report.faults.items()):
        print(f"{times:4} × {fault}")
    print(report)
    sys.exit(bool(report.lost or report.duplicated or report.crossed))


if __name__ == "__main__":
    main()
