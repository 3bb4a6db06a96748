"""Migrates many tenants: canaries, then the others in waves, then those with locked tables."""

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection as pipes
from multiprocessing import get_context, parent_process
from typing import Any, Final

from django.db import connections

from tenants.locking import WAIT_SECONDS
from tenants.schemas.migrating import MigrationResult, migrate_schema

# A pool of processes costs more than it gains below this many schemas (about 100 ms each).
MIN_POOLED_SCHEMAS = 8
# If all tenants of a wave fail, the run stops; the old version goes on serving the rest.
WAVE: Final = 100
# Tenants with locked tables are tried again after all others, after each of these pauses.
RETRY_PAUSES_SECONDS: Final = (1.0, 5.0, 15.0)

KILLED: Final = "the process that migrated it was killed"


class Fleet:
    """A run of migrate over many schemas."""

    def __init__(
        self,
        options: Mapping[str, Any],
        *,
        parallel: int,
        canary: int = 0,
        stop: bool = False,
        wave: int = WAVE,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """Prepare a run.

        Args:
            options: options of Django's migrate, for each schema.
            parallel: the maximum number of processes.
            canary: number of schemas to migrate first; if one of them fails, the run stops.
            stop: whether the run stops after the canaries in any case.
            wave: number of schemas between two checks; if all of them fail, the run stops.
            wait_seconds: how long to wait for another process that migrates the same schema.
        """
        self._options = options
        self._parallel = parallel
        self._canary = canary
        self._stop = stop
        self._wave = wave
        self._wait_seconds = wait_seconds
        # Why the run stopped before all schemas; empty if it did not.
        self.stopped = ""

    def migrate(self, schema_names: Sequence[str]) -> Iterator[MigrationResult]:
        """Migrate the schemas. Yield each result when it is there."""
        locked: list[MigrationResult] = []
        for wave in self._waves(schema_names):
            failed = 0
            for outcome in self._migrate(wave):
                if outcome.locked:
                    locked.append(outcome)
                else:
                    failed += bool(outcome.error)
                    yield outcome
            if self.stopped:  # the wave was the last in any case
                break
            if wave is self._canaries and (failed or len(locked) == len(wave)):
                self.stopped = "the first ones were not all migrated"
            elif wave is not self._canaries and failed == len(wave) == self._wave:
                self.stopped = f"{failed} failed one after the other"
            if self.stopped:
                break
        for pause in RETRY_PAUSES_SECONDS:
            if not locked:
                return
            time.sleep(pause)
            again, locked = [outcome.schema_name for outcome in locked], []
            for outcome in self._migrate(again):
                if outcome.locked:
                    locked.append(outcome)
                else:
                    yield outcome
        yield from locked

    def _waves(self, schema_names: Sequence[str]) -> Iterator[Sequence[str]]:
        self._canaries: Sequence[str] = schema_names[: self._canary]
        rest = schema_names[self._canary :]
        if self._canaries:
            if self._stop and rest:
                self.stopped = "only the first ones were wanted"
            yield self._canaries
        for start in range(0, len(rest), self._wave):
            yield rest[start : start + self._wave]

    def _migrate(self, schema_names: Sequence[str]) -> Iterator[MigrationResult]:
        if self._parallel < 2 or len(schema_names) < MIN_POOLED_SCHEMAS:
            for schema_name in schema_names:
                yield migrate_schema(schema_name, self._options, wait_seconds=self._wait_seconds)
            return
        broken = []
        for outcome in self._migrate_in_pool(schema_names, self._parallel):
            if outcome.error == KILLED:
                broken.append(outcome.schema_name)
            else:
                yield outcome
        for schema_name in broken:  # most were only waiting for the process that was killed
            yield from self._migrate_in_pool([schema_name], 1)

    def _migrate_in_pool(
        self, schema_names: Sequence[str], processes: int
    ) -> Iterator[MigrationResult]:
        # fork: the children have the apps, the migrations and the recording loaded.
        with ProcessPoolExecutor(
            processes, mp_context=get_context("fork"), initializer=begin_child
        ) as pool:
            futures = {
                pool.submit(
                    migrate_schema, schema_name, self._options, wait_seconds=self._wait_seconds
                ): schema_name
                for schema_name in schema_names
            }
            try:
                for future in as_completed(futures):
                    yield _outcome(future, futures[future])
            finally:
                pool.shutdown(cancel_futures=True)


def default_parallel() -> int:
    """Return the number of cores of this process, at most 8, so that Postgres has enough."""
    return min(len(os.sched_getaffinity(0)), 8)


def _outcome(future: Future[MigrationResult], schema_name: str) -> MigrationResult:
    try:
        return future.result()
    except BrokenProcessPool:
        return MigrationResult(schema_name, error=KILLED)


def begin_child() -> None:
    """Prepare a forked child: close no connection of the parent, and leave Ctrl-C to the parent.

    The parent stops handing out schemas; the running migration is finished. A child ends with a
    parent that is killed, because it would wait for the next schema for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for connection in connections.all(initialized_only=True):
        connection.connection = None
        connection.savepoint_ids = []
        connection.in_atomic_block = False


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        pipes.wait([parent.sentinel])
        os._exit(1)
