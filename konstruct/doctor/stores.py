"""Checks of the cache and the broker: Valkey or Redis."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from django.conf import settings
from django_redis import get_redis_connection

from konstruct.celery import app
from konstruct.doctor.answers import Finding, Subject, ok, rate, warning, wrong
from konstruct.doctor.machine import format_bytes
from konstruct.heartbeats import BEAT, MAX_AGE_SECONDS, OWNER, QUEUES, has_heartbeat

# Differences of clocks. Leases and heartbeats last ten seconds and more.
CLOCK_WARN_SECONDS: Final = 2
CLOCK_WRONG_SECONDS: Final = 10
WARN_MEMORY_PERCENT: Final = 80
FULL_MEMORY_PERCENT: Final = 95
MIN_MAJOR: Final = 7
REMEDY: Final = "Start the server, or correct {} (docs/operations.md, When a server fails)."


def subjects() -> list[Subject]:
    """Return the cache and the broker. Both may be databases of one server."""
    cache, broker = Store(), Store()
    return [
        Subject(
            "cache",
            {
                "policies": cache.check_policies,
                "clock": cache.check_clock,
                "processes": check_processes,
            },
            partial(_connect_to_cache, cache),
            REMEDY.format("REDIS_URL"),
        ),
        Subject(
            "broker",
            {"policies": broker.check_policies},
            partial(_connect_to_broker, broker),
            REMEDY.format("CELERY_BROKER_URL"),
        ),
    ]


class Store:
    """A connected server, with its own information."""

    client: Any
    info: dict[str, Any]

    def connect(self, client: Any) -> None:
        """Read the server's information."""
        self.client, self.info = client, client.info()

    def check_policies(self) -> Iterator[Finding]:
        """Check the server's eviction policy, persistence and memory."""
        info, findings = self.info, []
        name = "Valkey" if "valkey_version" in info else "Redis"
        version = str(info.get("valkey_version", info["redis_version"]))
        if int(version.partition(".")[0]) < MIN_MAJOR:
            text = f"{name} {version} is too old."
            findings.append(wrong(text, f"Install version {MIN_MAJOR} or newer."))
        if info["role"] not in ("master", "primary"):
            text = "It is a replica, and accepts no writes."
            findings.append(wrong(text, "Name the primary server in the URL."))
        if info["maxmemory_policy"] != "noeviction":
            text = (
                f"maxmemory-policy is {info['maxmemory_policy']}: with a full memory it drops"
                " windows and limits of rates in silence."
            )
            findings.append(warning(text, "Set maxmemory-policy noeviction."))
        if not info["aof_enabled"]:
            text = "appendonly is off: after a restart every window is built from Postgres again."
            findings.append(warning(text, "Set appendonly yes."))
        if info.get("aof_enabled") and info["aof_last_write_status"] != "ok":
            text = "It could not write its append-only file, and refuses writes."
            findings.append(wrong(text, "Make room on the disk of the server."))
        if limit := info["maxmemory"]:
            findings.append(
                rate(
                    100 * info["used_memory"] / limit,
                    f"It uses {format_bytes(info['used_memory'])} of its {format_bytes(limit)}"
                    " (maxmemory).",
                    "Raise maxmemory: at the limit the server refuses writes.",
                    warn=WARN_MEMORY_PERCENT,
                    bad=FULL_MEMORY_PERCENT,
                )
            )
        yield from findings or [ok(f"{name} {version}, noeviction, appendonly.")]

    def check_clock(self) -> Iterator[Finding]:
        """Compare the server's clock with that of this machine."""
        before = time.time()
        seconds, microseconds = self.client.time()
        yield compare_clocks(before, seconds + microseconds / 1e6, time.time())


def compare_clocks(before: float, server_time: float, after: float) -> Finding:
    """Compare a server's clock, which was read between two times of this machine."""
    difference = max(before - server_time, server_time - after, 0.0)
    at = datetime.fromtimestamp(server_time, UTC).isoformat(" ", "seconds")
    return rate(
        difference,
        f"Its clock is {difference:.1f} s from that of this machine: {at}.",
        "Synchronize both machines with a time server (NTP).",
        warn=CLOCK_WARN_SECONDS,
        bad=CLOCK_WRONG_SECONDS,
    )


def check_processes() -> Iterator[Finding]:
    """Look for the heartbeats of workers, beat and owner worker."""
    processes = (*QUEUES, BEAT, OWNER)
    missing = [process for process in processes if not has_heartbeat(process)]
    for process in missing:
        name = {BEAT: "beat", OWNER: "owner worker"}.get(process, f"worker of {process}")
        yield wrong(
            f"No {name} has been at work for {MAX_AGE_SECONDS} seconds.",
            "Start it, and read its log (docs/operations.md, Supervise the processes).",
        )
    if not missing:
        yield ok(f"At work: {', '.join(processes)}.")


@contextmanager
def _connect_to_cache(store: Store) -> Iterator[None]:
    store.connect(get_redis_connection())
    yield


@contextmanager
def _connect_to_broker(store: Store) -> Iterator[None]:
    options = {**settings.CELERY_BROKER_TRANSPORT_OPTIONS, "socket_timeout": 5}
    with app.connection_for_write(settings.CELERY_BROKER_URL, transport_options=options) as broker:
        channel: Any = broker.default_channel  # of Redis
        store.connect(channel.client)
        yield
