"""Measure whether a process grows: sample the memory of each under a steady mixed load.

    python -m benchmarks.load.soak [--minutes 30] [--clients 6]

The load is that of `python -m benchmarks.load`. The measured value is the anonymous memory of a
process, in which shared pages are divided (PSS). Pages of files (code and models) are not counted:
they are divided among all processes of the machine that map them, so they grow when another one
ends. RSS includes them. For Valkey, the peak of its data is not counted, because libc does not
return it. A process grows if the median of its last five samples is more than 5 % above that of the
first five after `--warm-up` minutes. The exit status is 1 if a process grows, or if a message was
lost or misdirected.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import redis

from benchmarks.load.deployment import A_WORKER_EACH, Layout, LoadDeployment, SlowEcho
from benchmarks.load.traffic import SLUGS, prepare, traffic

SAMPLE_SECONDS = 15.0
MAX_GROWTH = 1.05
SAMPLES = 5
LAYOUT = Layout("a process of each kind", web_processes=2, workers=A_WORKER_EACH)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--warm-up", type=float, default=5, help="minutes that are not compared")
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--history", type=int, default=40, help="imported messages of a user")
    options = parser.parse_args()
    samples: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    data: list[float] = []
    ends = threading.Event()

    def sample() -> None:
        while not ends.wait(SAMPLE_SECONDS):
            minutes = (time.monotonic() - began) / 60
            for name, process, stored in processes(deployment):
                with suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
                    held = memory(process.pid)
                    own = held["Pss_Anon"] + held["Pss_Shmem"] - stored
                    samples[name].append((minutes, own / 2**20, held["Rss"] / 2**20))
                if stored:
                    data.append(stored / 2**20)

    with (
        tempfile.TemporaryDirectory(prefix="konstruct-soak-") as home,
        SlowEcho(0.5) as model,
        LoadDeployment(Path(home) / "home", model, SLUGS).running() as deployment,
        deployment.serving(LAYOUT),
    ):
        prepare(deployment, options.history)
        began = time.monotonic()
        sampler = threading.Thread(target=sample)
        sampler.start()
        try:
            with traffic(deployment, users=options.clients, seconds=60 * options.minutes) as done:
                for minute in range(5, int(options.minutes), 5):
                    time.sleep(max(0.0, began + 60 * minute - time.monotonic()))
                    show(f"after {minute} minutes", samples, options.warm_up)
        finally:
            ends.set()
            sampler.join()
    (run,) = done
    print(f"\n{run.accepted} messages accepted, {run.answered} answered; {run.requests:.1f} req/s")
    print(f"losses {dict(run.losses)}, violations {run.violations}; load average {run.loads}")
    print(f"the data in Valkey took {data[0]:.2f} MB at the beginning, {data[-1]:.2f} at most")
    grown = show("at the end", samples, options.warm_up)
    sys.exit(bool(grown) or not run.is_clean)


def memory(pid: int) -> dict[str, int]:
    """Return the values in bytes of a process's smaps_rollup by name."""
    _, *lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return {
        name: int(kb) << 10 for name, kb, _ in (line.replace(":", "").split() for line in lines)
    }


def processes(deployment: LoadDeployment) -> Iterator[tuple[str, psutil.Process, int]]:
    """Yield each process of the deployment with its name and the peak of its stored bytes."""
    for name, supervised in deployment.processes.items():
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(supervised.process.pid)
            yield name, process, 0
            for number, child in enumerate(process.children(), 1):
                yield f"{name}, child {number}", child, 0
    with redis.from_url(deployment.redis_url) as cache:
        held = cache.info("memory")
        stored = int(held["used_memory_peak"]) - int(held["used_memory_overhead"])
    for process in deployment.valkey.processes():
        yield "Valkey", process, stored


def show(
    when: str, samples: dict[str, list[tuple[float, float, float]]], warm_up: float
) -> list[str]:
    """Print the memory of each process. Return the names of the grown ones."""
    print(f"\n{when:28}{'own MB first':>14}{'last':>8}{'ratio':>7}{'RSS first':>11}{'last':>8}")
    grown = []
    for name, all_samples in samples.items():
        found = [sample for sample in all_samples if sample[0] >= warm_up]
        if len(found) < SAMPLES:
            continue
        first, last = found[:SAMPLES], found[-SAMPLES:]
        own = [statistics.median(sample[1] for sample in part) for part in (first, last)]
        rss = [statistics.median(sample[2] for sample in part) for part in (first, last)]
        ratio = own[1] / own[0]
        print(
            f"  {name:26}{own[0]:14.2f}{own[1]:8.2f}{ratio:7.3f}{rss[0]:11.1f}{rss[1]:8.1f}",
            flush=True,
        )
        if ratio > MAX_GROWTH:
            grown.append(name)
    return grown


if __name__ == "__main__":
    main()
