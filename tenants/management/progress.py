"""A bar of what is done and how long the rest will take, for terminals."""

import time
from typing import Final

from django.core.management.base import OutputWrapper

BAR_WIDTH: Final = 30


class Progress:
    """A bar on a terminal's line."""

    def __init__(self, stdout: OutputWrapper, total: int) -> None:
        self._stdout = stdout
        self._total = total
        self._began = time.monotonic()

    def show(self, done: int) -> None:
        """Draw the bar anew."""
        filled = BAR_WIDTH * done // max(self._total, 1)
        bar = "█" * filled + "░" * (BAR_WIDTH - filled)
        self._stdout.write(f"\r\033[K{bar} {done:,}/{self._total:,}  {self.left(done)}", ending="")
        self._stdout.flush()

    def clear(self) -> None:
        """Leave the line empty, for others to write on."""
        self._stdout.write("\r\033[K", ending="")
        self._stdout.flush()

    def left(self, done: int) -> str:
        """How long the rest will take, if it takes as long each; nothing below a second."""
        seconds = (time.monotonic() - self._began) / max(done, 1) * (self._total - done)
        if seconds < 1:
            return ""
        return (
            f"about {seconds:.0f} s left" if seconds < 120 else f"about {seconds / 60:.0f} min left"
        )
