"""Metrics for Prometheus. Each is declared once, with the allowed values of its labels.

Any other value of a label is counted as "other", so that no text of a caller becomes a label, and
the number of time series does not grow with tenants. Counters are declared in the module that
counts, gauges, which are read from Postgres, in `konstruct/metrics.py`.

With METRICS_DIR each process counts in files there, and one process sums them for Prometheus: the
counts of a killed process stay. Without it a process counts in its memory, for tests.
"""

import fcntl
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final, cast

from django.conf import settings

if settings.METRICS_DIR:
    settings.METRICS_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.access(settings.METRICS_DIR, os.W_OK):  # another user's command counts in its memory
        # prometheus_client reads it when it is imported.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(settings.METRICS_DIR)

import psutil
from prometheus_client import CollectorRegistry, Counter, Histogram, multiprocess, values
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.registry import Collector

OTHER: Final = "other"
IN_FILES: Final = values.ValueClass is not values.MutexValue
# From a cached answer to a language model's reply that takes minutes.
SECONDS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
REGISTRY: Final = CollectorRegistry()
# All series of a process take less. A file that never grows has its blocks from the beginning.
FILE_BYTES: Final = 1 << 20
DEAD_PROCESSES: Final = "0"


class AllocatedFile(MmapedDict):
    """A file of counts with all its blocks. On a full disk the process counts in its memory.

    prometheus_client maps a file with holes. The kernel ends a process by SIGBUS that writes to a
    hole for which the disk has no block.
    """

    def __init__(self, filename: str, read_mode: bool = False) -> None:
        try:
            with Path(filename).open("ab") as file:
                os.posix_fallocate(file.fileno(), 0, FILE_BYTES)
        except OSError:
            Path(filename).unlink(missing_ok=True)
            filename = f"/proc/self/fd/{os.memfd_create('metrics')}"
        super().__init__(filename, read_mode)


values.MmapedDict = AllocatedFile  # type: ignore[misc]


def remove_dead_processes() -> None:
    """Remove the files of dead processes, after adding their counts to those of process 0."""
    with _locked_files():
        for path in cast(Path, settings.METRICS_DIR).glob("*_*.db"):
            kind, _, pid = path.stem.rpartition("_")
            if pid == DEAD_PROCESSES or psutil.pid_exists(int(pid)):
                continue
            if path.stat().st_size:
                sums = AllocatedFile(str(path.with_name(f"{kind}_{DEAD_PROCESSES}.db")))
                for key, value, at, _ in MmapedDict.read_all_values_from_file(str(path)):
                    sums.write_value(key, sums.read_value(key)[0] + value, at)
                sums.close()
            path.unlink()


@contextmanager
def _locked_files() -> Iterator[None]:
    """Let one process at a time read the files of all processes, or remove some."""
    with cast(Path, settings.METRICS_DIR).joinpath("lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class Metric:
    """A metric. Creating it registers it under its name."""

    name: str
    kind: str
    """counter, gauge or histogram."""
    text: str
    labels: Mapping[str, Collection[str]]
    """The values of each label, beside "other"."""
    source: Any = None
    """The metric of prometheus_client; None: a gauge that is read from Postgres."""

    def __post_init__(self) -> None:
        METRICS[self.name] = self

    def of(self, **labels: str) -> Any:
        """Return the time series with these labels. All labels are required."""
        return self.source.labels(**self.bound_labels(labels)) if labels else self.source

    def bound_labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the labels, with "other" for each value that is not allowed."""
        return {
            name: labels[name] if labels[name] in known else OTHER
            for name, known in self.labels.items()
        }


METRICS: Final[dict[str, Metric]] = {}


def counter(name: str, text: str, **labels: Collection[str]) -> Metric:
    """Declare a counter; its name ends in _total."""
    return Metric(name, "counter", text, labels, Counter(name, text, labels, registry=REGISTRY))


def histogram(name: str, text: str, **labels: Collection[str]) -> Metric:
    """Declare a histogram of seconds."""
    source = Histogram(name, text, labels, buckets=SECONDS, registry=REGISTRY)
    return Metric(name, "histogram", text, labels, source)


def gauge(name: str, text: str, **labels: Collection[str]) -> Metric:
    """Declare a gauge that is read when Prometheus scrapes."""
    return Metric(name, "gauge", text, labels)


class Counts(Collector):
    """The counts of all processes of METRICS_DIR, or of this process."""

    def collect(self) -> Iterator[Any]:
        """Return all metrics.

        Counters have all series of the values of their labels. Prometheus computes no
        increase for a series that begins at 1: the first event would be in no graph and fire no
        alert.
        """
        for metric in list(METRICS.values()):
            choices = metric.labels.values()
            if metric.kind == "counter":
                for label_values in list(product(*choices)):
                    metric.of(**dict(zip(metric.labels, label_values, strict=True)))
        if not IN_FILES:
            yield from REGISTRY.collect()
            return
        remove_dead_processes()
        with _locked_files():
            yield from list(multiprocess.MultiProcessCollector(None).collect())


def registry(*others: Collector) -> CollectorRegistry:
    """Return the registry for Prometheus.

    Args:
        others: further collectors, such as states.
    """
    scraped = CollectorRegistry()
    for collector in (Counts(), *others):
        scraped.register(collector)
    return scraped
