"""Measure the capacity of a deployment on this machine by its processes, and its overload.

    python -m benchmarks.load [LAYOUT ...] [--users 4 16 64] [--seconds 20] [--history 60]

For each layout, clients of two big and six small tenants with an imported history send messages
(and wait, stream or poll for the reply), search, list, read admin pages and erase people, by REST,
OpenAI's interface, MCP and Slack. Slack and the language model are servers on loopback; the model
is busy now and then. Clients, servers and model share the machine: compare the figures of one run
by ratios.

After each step the script compares accepted messages with stored ones: each must be answered once,
with its own reply. The exit status is 1 if a message was lost, duplicated or misdirected, or if an
answer was wrong (500, or 429 and 503 without Retry-After).
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.load.deployment import THREE_WORKERS, UNLIMITED, Layout, LoadDeployment, SlowEcho
from benchmarks.load.traffic import SLUGS, Run, prepare, traffic

# Below the capacity of this machine, so that clients reach the limits.
LIMITED = {
    "RATE_LIMIT_BURST": "16",
    "RATE_LIMIT_PER_SECOND": "8",
}
LAYOUTS = {
    "one": Layout("1 web process, 1 worker"),
    "two": Layout("2 web processes, 1 worker", web_processes=2),
    "threads": Layout(
        "2 web processes, 1 worker with 4 threads for replies",
        web_processes=2,
        settings={**UNLIMITED, "REPLY_CONCURRENCY": "4"},
    ),
    "workers": Layout("2 web processes, 3 workers", web_processes=2, workers=THREE_WORKERS),
    "proxy": Layout("nginx, 2 webs, 3 workers", webs=2, workers=THREE_WORKERS, proxy=True),
    "limits": Layout(
        "nginx, 2 webs, 3 workers, 4 requests a second for a key",
        webs=2,
        workers=THREE_WORKERS,
        proxy=True,
        settings=LIMITED,
    ),
}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "layouts", nargs="*", metavar="LAYOUT", help=f"of {', '.join(LAYOUTS)}; by default all"
    )
    parser.add_argument("--users", type=int, nargs="+", default=[4, 16, 64, 256], help="clients")
    parser.add_argument("--seconds", type=float, default=20, help="of each step")
    parser.add_argument("--history", type=int, default=60, help="imported messages of a user")
    parser.add_argument("--latency", type=float, default=0.5, help="seconds of the model's answer")
    options = parser.parse_args()
    if unknown := set(options.layouts) - set(LAYOUTS):
        parser.error(f"no layout is called {', '.join(sorted(unknown))}")
    is_clean = True
    with (
        tempfile.TemporaryDirectory(prefix="konstruct-load-") as home,
        SlowEcho(options.latency) as model,
        LoadDeployment(Path(home) / "home", model, SLUGS).running() as deployment,
    ):
        with deployment.serving(Layout("of the import")):
            imported = prepare(deployment, options.history)
        print(f"{imported} messages of {len(SLUGS)} tenants are imported", flush=True)
        for name in options.layouts or LAYOUTS:
            layout, runs = LAYOUTS[name], list[Run]()
            with deployment.serving(layout):
                for users in options.users:
                    with traffic(deployment, users=users, seconds=options.seconds) as done:
                        pass
                    runs += done
            show(layout, runs)
            is_clean &= all(run.is_clean for run in runs)
        ledgers = json.loads(deployment.manage("verify_memory", "--json", **deployment.owner))
        findings = [finding for ledger in ledgers for finding in ledger["findings"]]
        print(f"\nverify_memory: {findings or 'nothing is wrong'}")
    sys.exit(not is_clean or bool(findings))


def show(layout: Layout, runs: list[Run]) -> None:
    """Print the growth with clients, and each call with the most clients."""
    print(f"\n{layout.name}; load average {runs[0].loads[0]:.1f} to {runs[-1].loads[1]:.1f}")
    print(f"  {'clients':>8}{'req/s':>8}{'ratio':>7}{'replies/s':>10}", end="")
    print("".join(f"{head:>14}" for head in ("send p50/p95", "recall", "transcript")), end="")
    print(f"{'429':>7}{'503':>6}{'broken':>7}{'accepted':>10}{'answered':>9}{'erased':>7}")
    for run in runs:
        times = [
            f"{call['p50']:.0f}/{call['p95']:.0f}" if (call := run.calls.get(name)) else "-"
            for name in ("send, wait", "recall", "transcript")
        ]
        broken = sum(run.count(name) for name in run.calls if name.startswith("broken"))
        print(
            f"  {run.users:8}{run.requests:8.1f}{run.requests / runs[0].requests:7.2f}"
            f"{run.answered / run.seconds:10.1f}{''.join(f'{time:>14}' for time in times)}"
            f"{run.count('refused 429'):7}{run.count('refused 503'):6}{broken:7}"
            f"{run.accepted:10}{run.answered:9}{run.erased:7}"
        )
        for what, count in {**run.losses, **run.violations}.items():
            print(f"    {count} × {what}")
    last = runs[-1]
    print(f"\n  ms with {last.users} clients {'':4}{'calls':>8}{'p50':>8}{'p95':>8}{'p99':>8}")
    for name, call in sorted(last.calls.items()):
        print(f"  {name:24}{call['count']:8}", end="")
        print("".join(f"{call[p] or 0:8.0f}" for p in ("p50", "p95", "p99")), flush=True)


if __name__ == "__main__":
    main()
