"""Polling for a lock: until it is free, or until a timeout."""

import pytest

from tenants import locking
from tenants.locking import MAX_PAUSE_SECONDS, poll


class Clock:
    """A clock that advances with sleep()."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses.append(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(locking, "time", clock)
    return clock


def test_free_lock_is_acquired_at_once(clock: Clock) -> None:
    assert poll(lambda: True, seconds=0)
    assert clock.pauses == []


def test_lock_is_acquired_when_released(clock: Clock) -> None:
    assert poll(lambda: clock.now >= 3, seconds=10)
    assert 3 <= clock.now <= 3 + MAX_PAUSE_SECONDS
    assert max(clock.pauses) == MAX_PAUSE_SECONDS


def test_unreleased_lock_times_out(clock: Clock) -> None:
    assert not poll(lambda: False, seconds=10)
    assert abs(clock.now - 10) < 1e-9
