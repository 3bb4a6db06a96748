"""What the owner's worker does for tenants, each as often as it is needed."""

import time
from collections.abc import Callable

from konstruct.trust import history_merge
from konstruct.trust.erasure import carry_out_requested
from konstruct.trust.erasure.retention import apply_all

# Each looks into every tenant's schema.
ERASE_EVERY_SECONDS = 10.0
MOVE_EVERY_SECONDS = 10.0
RETAIN_EVERY_SECONDS = 3600.0


def at_most_every(seconds: float, job: Callable[[], int]) -> Callable[[], int]:
    """Let a job that is called all the time rest; the first call does it."""
    next_at = -float("inf")

    def rested() -> int:
        nonlocal next_at
        if time.monotonic() < next_at:
            return 0
        next_at = time.monotonic() + seconds
        return job()

    return rested


erase = at_most_every(ERASE_EVERY_SECONDS, carry_out_requested)
move = at_most_every(MOVE_EVERY_SECONDS, history_merge.carry_out_requested)
retain = at_most_every(RETAIN_EVERY_SECONDS, apply_all)
