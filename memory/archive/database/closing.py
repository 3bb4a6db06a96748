"""What is closed at the end of its `with` block."""

import abc
from types import TracebackType
from typing import Self


class Closing(abc.ABC):
    """An object that holds a file: `with` gives it, and closes it however the block ends."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
