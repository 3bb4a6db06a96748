"""Fair shares: slots that are divided between tenants, which the threads of a process share."""

import functools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, ParamSpec, TypeVar
from uuid import UUID

P = ParamSpec("P")
T = TypeVar("T")


class FairShares:
    """Slots that tenants take and give back. Safe to share between threads.

    A tenant that has none may take any free slot. A tenant that has some may take more only up to
    half of the slots that the other tenants leave free, less the reserve:

        own slots <= (slots - reserve - slots of others) / 2

    With 100 slots and a reserve of 10, one tenant alone gets 45, two get 30 each, eight get 10
    each; a ninth still finds free slots, since `reserve` slots are only for tenants that have none.

    Args:
        slots: the number of slots for all tenants together.
        reserve: how many of them only tenants without a slot may take.
    """

    def __init__(self, slots: int, reserve: int = 0) -> None:
        self.slots, self.reserve = slots, reserve
        self._taken: Counter[UUID] = Counter()
        self._changed = threading.Condition()

    def enter(self, tenant: UUID, *, seconds: float = 0.0) -> bool:
        """Take a slot for the tenant; return False if it may take none.

        Args:
            tenant: for whom.
            seconds: how long to wait for a slot. 0: not at all.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._may_enter(tenant), seconds):
                return False
            self._taken[tenant] += 1
            return True

    def leave(self, tenant: UUID) -> None:
        """Give back one of the tenant's slots."""
        with self._changed:
            self._taken[tenant] -= 1
            if not self._taken[tenant]:
                del self._taken[tenant]
            self._changed.notify_all()

    @contextmanager
    def slot(self, tenant: UUID, *, seconds: float) -> Iterator[bool]:
        """Hold a slot of the tenant during the block; False: it got none within the seconds."""
        has_slot = self.enter(tenant, seconds=seconds)
        try:
            yield has_slot
        finally:
            if has_slot:
                self.leave(tenant)

    def is_full(self) -> bool:
        """Return whether all slots are taken."""
        return self.in_flight() >= self.slots

    def tenants_at_limit(self) -> frozenset[UUID]:
        """Return the tenants that have slots and may take no more."""
        with self._changed:
            return frozenset(tenant for tenant in self._taken if not self._may_enter(tenant))

    def in_flight(self) -> int:
        """Return the number of slots that are taken."""
        with self._changed:
            return self._taken.total()

    def _may_enter(self, tenant: UUID) -> bool:
        of_tenant, taken = self._taken[tenant], self._taken.total()
        if not of_tenant:
            return taken < self.slots
        return 2 * (of_tenant + 1) <= self.slots - self.reserve - (taken - of_tenant)


class Once(Generic[P, T]):
    """A function that is called once for the same arguments; later calls return its first result.

    `functools.cache` calls a function in each of the threads that need its result at first.
    """

    def __init__(self, create: Callable[P, T]) -> None:
        self._lock = threading.Lock()
        self._cached = functools.cache(create)
        self.cache_clear = self._cached.cache_clear
        functools.update_wrapper(self, create)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result."""
        with self._lock:
            return self._cached(*args, **kwargs)  # type: ignore[arg-type]
