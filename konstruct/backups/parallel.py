"""Restores several tenants in parallel, each in its own process."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Final

from django.db import DatabaseError

from konstruct.backups.settling import Restored
from tenants.exceptions import KonstructError, detail_of
from tenants.schemas.fleet import begin_child

# Below this many tenants, one process does all of them.
MIN_POOLED_TENANTS: Final = 4
KILLED: Final = "the process that restored it was killed: run restore again"


def restore_in_parallel(
    calls: Mapping[str, Callable[[], Restored]], *, parallel: int
) -> Iterator[tuple[str, Restored | str]]:
    """Restore tenants. One that fails does not stop the others.

    Args:
        calls: functions that restore a tenant, by its name. They must be picklable.
        parallel: the maximum number of processes.

    Yields:
        The name of a finished tenant, with the result or the error in one line.
    """
    if parallel < 2 or len(calls) < MIN_POOLED_TENANTS:
        for name, call in calls.items():
            yield name, _outcome(call)
        return
    # fork: the children have the apps, the migrations and the servers of tenants loaded.
    with ProcessPoolExecutor(
        parallel, mp_context=get_context("fork"), initializer=begin_child
    ) as pool:
        futures = {pool.submit(_outcome, call): name for name, call in calls.items()}
        try:
            for future in as_completed(futures):
                try:
                    yield futures[future], future.result()
                except BrokenProcessPool:
                    yield futures[future], KILLED
        finally:
            pool.shutdown(cancel_futures=True)


def _outcome(call: Callable[[], Restored]) -> Restored | str:
    try:
        return call()
    except (KonstructError, DatabaseError) as error:
        text = detail_of(error) if isinstance(error, KonstructError) else str(error)
        return " ".join(text.split())
