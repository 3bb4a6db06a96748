"""Each process and server is killed under load: the alerts that fire, and losses.

    python -m benchmarks.load.kills [web replies …] [--clients 8]

Nothing starts a killed process again before its alert fires. A real Prometheus (Debian's package)
scrapes the deployment and evaluates deploy/prometheus/alerts.yml, with `for` of a second; then the
process comes back, and the alert ends. In the end each query of deploy/grafana has to return
series, every message that was accepted has one reply, and `verify_memory` finds nothing. Exit
status 1 if not.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.load.deployment import A_WORKER_EACH, Layout, LoadDeployment, SlowEcho
from benchmarks.load.prometheus import Prometheus
from benchmarks.load.traffic import SLUGS, import_history, settle, traffic
from tests.end_to_end.deployment import PROJECT

LAYOUT = Layout("a process of each kind", workers=A_WORKER_EACH)
# The killed processes, with the alert that fires and the process that it names.
KILLS = {
    "web": ("KonstructProcessDown", "web"),
    "replies": ("KonstructProcessDown", "replies"),
    "deliveries": ("KonstructProcessDown", "deliveries"),
    "embeddings": ("KonstructProcessDown", "embeddings"),
    "sweeps": ("KonstructMetricsMissing", ""),
    "beat": ("KonstructProcessDown", "beat"),
    "owner": ("KonstructProcessDown", "owner"),
    "Postgres": ("KonstructPostgresDown", ""),
    "Valkey": ("KonstructCacheDown", ""),
}
ALERT_SECONDS = 90
BACK_SECONDS = 120
# Panels of what does not happen in this load.
EMPTY = {"jobs: Deliveries", "jobs: Attempts that failed, jobs given up"}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kills", nargs="*", metavar="KILL", help=f"of {', '.join(KILLS)}")
    parser.add_argument("--clients", type=int, default=8)
    options = parser.parse_args()
    chosen = options.kills or list(KILLS)
    if unknown := set(chosen) - set(KILLS):
        parser.error(f"nothing is called {', '.join(sorted(unknown))}")
    wrong = list[str]()
    with (
        tempfile.TemporaryDirectory(prefix="konstruct-kills-") as home,
        SlowEcho(0.5) as model,
        LoadDeployment(
            Path(home) / "home", model, SLUGS, DATABASE_POOL_SIZE="10"
        ).running() as ours,
        ours.serving(LAYOUT),
        Prometheus(ours.home / "prometheus", f"127.0.0.1:{ours.metrics_port}").running() as watch,
    ):
        import_history(ours, 8)
        settle(ours.tenants)
        ended = threading.Event()
        seconds = 60 + len(chosen) * (ALERT_SECONDS + BACK_SECONDS)
        with traffic(
            ours, users=options.clients, seconds=seconds, may_answer=(0, 502, 504), until=ended
        ) as done:
            time.sleep(20)
            wrong += [f"before: {alert} fires" for alert in watch.firing()]
            for name in chosen:
                wrong += kill(ours, watch, name)
            wrong += empty_panels(watch)
            ended.set()
        (run,) = done
        print(
            f"\n{run.accepted} messages accepted, {run.answered} answered, {run.resent} sent again"
        )
        wrong += [f"{count} × {what}" for what, count in {**run.losses, **run.violations}.items()]
        for ledger in json.loads(ours.manage("verify_memory", "--json", **ours.owner)):
            wrong += [f"verify_memory: {finding}" for finding in ledger["findings"]]
    print("\n".join(wrong) or "nothing is wrong")
    sys.exit(bool(wrong))


def kill(ours: LoadDeployment, watch: Prometheus, name: str) -> list[str]:
    """Kill it until its alert fires; return what was wrong."""
    wrong, began = list[str](), time.monotonic()
    with away(ours, name):
        if not wait_for(lambda: KILLS[name] in watch.firing(), ALERT_SECONDS):
            wrong.append(f"{name}: {KILLS[name]} does not fire, but {watch.firing()}")
        fired, others = time.monotonic() - began, watch.firing() - {KILLS[name]}
    back = time.monotonic()
    if not wait_for(lambda: KILLS[name] not in watch.firing(), BACK_SECONDS):
        wrong.append(f"{name}: {KILLS[name]} does not end")
    names = ", ".join(sorted(f"{alert} {of}".strip() for alert, of in others)) or "-"
    print(
        f"{name:12}{KILLS[name][0]:26} fires after {fired:4.0f} s, ends after"
        f" {time.monotonic() - back:4.0f} s; others: {names}",
        flush=True,
    )
    return wrong


@contextmanager
def away(ours: LoadDeployment, name: str) -> Iterator[None]:
    """Kill a process or server, and start it again after the block."""
    if name in ours.processes:
        with ours.processes[name].away():
            yield
        return
    store = {"Postgres": ours.main, "Valkey": ours.valkey}[name]
    store.kill()
    try:
        yield
    finally:
        store.start()


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    """Return whether it comes about in time."""
    deadline = time.monotonic() + seconds
    while not (is_met := condition()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return is_met


def empty_panels(watch: Prometheus) -> list[str]:
    """Return the panels of deploy/grafana that have no series."""
    empty = list[str]()
    for path in sorted((PROJECT / "deploy" / "grafana").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            of = f"{path.stem}: {panel['title']}"
            for target in panel["targets"]:
                expression = target["expr"].replace("$__rate_interval", "5m")
                if not watch.query(expression) and of not in EMPTY:
                    empty.append(f"{of} is empty: {expression}")
    return empty


if __name__ == "__main__":
    main()
