"""Migrates many tenants: canaries first, then the others, in several processes."""

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import connection as pipes, get_context, parent_process
from typing import Any, Final

from django.db import connections

from tenants.schemas.migrating import MigrationResult, migrate_schema

# A pool of processes costs more than it gains below this many schemas (about 100 ms each).
MIN_POOLED_SCHEMAS = 8
# Tenants with locked tables, or whose migration Postgres cancelled because of another session, are
# tried again after all others, after each of these pauses.
RETRY_PAUSES_SECONDS: Final = (1.0, 5.0, 15.0)


def migrate_schemas(
    schema_names: Sequence[str],
    options: Mapping[str, Any],
    *,
    parallel: int,
    canary: int = 0,
) -> Iterator[MigrationResult]:
    """Migrate schemas. Yield each result when it is there.

    Args:
        schema_names: the schemas.
        options: options of Django's migrate, for each schema.
        parallel: the maximum number of processes.
        canary: number of schemas to migrate first. If one of them fails, the others are not begun.
    """
    migrate = partial(migrate_schema, options=options)
    for group in (schema_names[:canary], schema_names[canary:]):
        has_failed = False
        for result in _migrate_with_retries(migrate, group, parallel):
            has_failed |= bool(result.error)
            yield result
        if has_failed:
            return


Migrate = partial[MigrationResult]


def _migrate_with_retries(
    migrate: Migrate, schema_names: Sequence[str], parallel: int
) -> Iterator[MigrationResult]:
    cancelled: list[MigrationResult] = []
    for pause in (0, *RETRY_PAUSES_SECONDS):
        time.sleep(pause)
        cancelled = []
        for result in _migrate(migrate, schema_names, parallel):
            if result.cancelled:
                cancelled.append(result)
            else:
                yield result
        if not cancelled:
            return
        schema_names = [result.schema_name for result in cancelled]
    yield from cancelled


def _migrate(
    migrate: Migrate, schema_names: Sequence[str], parallel: int
) -> Iterator[MigrationResult]:
    if parallel < 2 or len(schema_names) < MIN_POOLED_SCHEMAS:
        yield from map(migrate, schema_names)
        return
    yield from _migrate_in_pool(migrate, schema_names, parallel)


def _migrate_in_pool(
    migrate: Migrate, schema_names: Sequence[str], processes: int
) -> Iterator[MigrationResult]:
    killed = []
    # fork: the children have the apps and the migrations loaded.
    with ProcessPoolExecutor(
        processes, mp_context=get_context("fork"), initializer=begin_child
    ) as pool:
        futures = {pool.submit(migrate, name): name for name in schema_names}
        try:
            for future in as_completed(futures):
                try:
                    yield future.result()
                except BrokenProcessPool:
                    killed.append(futures[future])
        finally:
            pool.shutdown(cancel_futures=True)
    for name in killed:
        if len(schema_names) == 1:
            yield MigrationResult(name, error="the process that migrated it was killed")
        else:  # most were only waiting for the process that was killed
            yield from _migrate_in_pool(migrate, [name], 1)


def default_parallel() -> int:
    """Return the number of cores of this process, at most 8, so that Postgres has enough."""
    return min(len(os.sched_getaffinity(0)), 8)


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
