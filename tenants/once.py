"""Objects of which a process has one, such as a limit that its threads share."""

import functools
import threading
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


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
