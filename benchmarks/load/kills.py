"""Kill each process and server under load. Check the alerts that fire, and losses.

    python -m benchmarks.load.kills [web replies … | --panels] [--clients 8]

A killed process is not restarted before its alert fires. A real Prometheus (Debian's package)
scrapes the deployment and evaluates deploy/prometheus/alerts.yml, with a `for` of one second. Then
the process is restarted, and the alert must end. At the end each query of deploy/grafana must
return numbers, every accepted message must have one reply, and `verify_memory` must report no
finding. Otherwise the exit status is 1.
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
from benchmarks.load.traffic import SLUGS, prepare, traffic

LAYOUT = Layout("a process of each kind", workers=A_WORKER_EACH)
# The killed processes, each with its alert and the process that the alert names.
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
# Seconds of traffic until messages arrive for which the model is busy.
SECONDS_BEFORE = 60


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kills", nargs="*", metavar="KILL", help=f"of {', '.join(KILLS)}")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument(
        "--patience",
        type=float,
        default=300,
        help="seconds to wait for an alert, and for its end: more where the machine does much else",
    )
    parser.add_argument(
        "--panels", action="store_true", help="kill nothing: only look for panels without data"
    )
    options = parser.parse_args()
    chosen = [] if options.panels else options.kills or list(KILLS)
    if unknown := set(chosen) - set(KILLS):
        parser.error(f"nothing is called {', '.join(sorted(unknown))}")
    wrong = list[str]()
    with (
        tempfile.TemporaryDirectory(prefix="konstruct-kills-") as home,
        SlowEcho(0.5) as model,
        LoadDeployment(
            Path(home) / "home", model, SLUGS, DATABASE_POOL_SIZE="10"
        ).running() as deployment,
        deployment.serving(LAYOUT),
        Prometheus(
            deployment.home / "prometheus", f"127.0.0.1:{deployment.metrics_port}"
        ).running() as watch,
    ):
        prepare(deployment, 8)
        ended = threading.Event()
        seconds = 2 * SECONDS_BEFORE + len(chosen) * 2 * options.patience
        with traffic(
            deployment,
            users=options.clients,
            seconds=seconds,
            may_answer=(0, 502, 504),
            until=ended,
        ) as done:
            time.sleep(SECONDS_BEFORE)
            wrong += [f"before: {alert} fires" for alert in watch.firing()]
            for name in chosen:
                wrong += kill(deployment, watch, name, options.patience)
            wrong += watch.panels_without_data()
            ended.set()
        (run,) = done
        print(
            f"\n{run.accepted} messages accepted, {run.answered} answered, {run.resent} sent again"
        )
        wrong += [f"{count} × {what}" for what, count in {**run.losses, **run.violations}.items()]
        for ledger in json.loads(deployment.manage("verify_memory", "--json", **deployment.owner)):
            wrong += [f"verify_memory: {finding}" for finding in ledger["findings"]]
    print("\n".join(wrong) or "nothing is wrong")
    sys.exit(bool(wrong))


def kill(deployment: LoadDeployment, watch: Prometheus, name: str, patience: float) -> list[str]:
    """Kill the process until its alert fires. Return the violations."""
    wrong, began = list[str](), time.monotonic()
    with away(deployment, name):
        if not wait_for(lambda: KILLS[name] in watch.firing(), patience):
            wrong.append(f"{name}: {KILLS[name]} does not fire, but {watch.firing()}")
        fired, others = time.monotonic() - began, watch.firing() - {KILLS[name]}
    back = time.monotonic()
    if not wait_for(lambda: KILLS[name] not in watch.firing(), patience):
        wrong.append(f"{name}: {KILLS[name]} does not end")
    names = ", ".join(sorted(f"{alert} {of}".strip() for alert, of in others)) or "-"
    print(
        f"{name:12}{KILLS[name][0]:26} fires after {fired:4.0f} s, ends after"
        f" {time.monotonic() - back:4.0f} s; others: {names}",
        flush=True,
    )
    return wrong


@contextmanager
def away(deployment: LoadDeployment, name: str) -> Iterator[None]:
    """Kill a process or server, and restart it after the block."""
    if name in deployment.processes:
        with deployment.processes[name].away():
            yield
        return
    store = {"Postgres": deployment.main, "Valkey": deployment.valkey}[name]
    store.kill()
    try:
        yield
    finally:
        store.start()


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    """Return whether the condition becomes true in time."""
    deadline = time.monotonic() + seconds
    while not (is_met := condition()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return is_met


if __name__ == "__main__":
    main()
