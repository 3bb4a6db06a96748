"""Waiting for an advisory lock by asking again, so that no statement waits in Postgres.

A statement that waits holds a snapshot, which CREATE INDEX CONCURRENTLY waits for in turn. Between
two tries a session holds nothing, and the wait ends when its time is over.
"""

import time
from collections.abc import Callable

FIRST_PAUSE_SECONDS = 0.005
MAX_PAUSE_SECONDS = 0.1


def poll(
    try_lock: Callable[[], bool],
    *,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Call `try_lock` until it returns True; False if it has not after so many seconds.

    Args:
        try_lock: such as one that runs `SELECT pg_try_advisory_lock(…)`.
    """
    deadline = clock() + seconds
    pause = FIRST_PAUSE_SECONDS
    while not try_lock():
        left = deadline - clock()
        if left <= 0:
            return False
        sleep(min(pause, left))
        pause = min(2 * pause, MAX_PAUSE_SECONDS)
    return True
