"""Polling for a lock: until it is free, or until a timeout."""

from tenants.locking import MAX_PAUSE_SECONDS, poll


class Clock:
    """A clock that advances with sleep()."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses.append(seconds)


def test_free_lock_is_acquired_at_once() -> None:
    clock = Clock()
    assert poll(lambda: True, seconds=0, clock=clock.time, sleep=clock.sleep)
    assert clock.pauses == []


def test_lock_is_acquired_when_released() -> None:
    clock = Clock()
    assert poll(lambda: clock.now >= 3, seconds=10, clock=clock.time, sleep=clock.sleep)
    assert 3 <= clock.now <= 3 + MAX_PAUSE_SECONDS
    assert max(clock.pauses) == MAX_PAUSE_SECONDS


def test_unreleased_lock_times_out() -> None:
    clock = Clock()
    assert not poll(lambda: False, seconds=10, clock=clock.time, sleep=clock.sleep)
    assert abs(clock.now - 10) < 1e-9
