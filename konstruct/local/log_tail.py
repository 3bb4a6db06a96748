"""Follow a log file that is rotated by renaming, and pass on its lines with a prefix.

What a terminal would obey is escaped, whoever wrote it into the log.
"""

import io
import os
from collections.abc import Callable
from pathlib import Path

from konstruct.printable import one_line


class LogTail:
    """What is appended from now on, line by line."""

    def __init__(self, path: Path, prefix: str, say: Callable[[str], None]) -> None:
        self._path = path
        self._prefix = prefix
        self._say = say
        self._file: io.BufferedReader | None = None
        self._rest = b""
        if path.exists():
            self._file = path.open("rb")
            self._file.seek(0, io.SEEK_END)

    def show(self) -> None:
        """Pass on the lines that were completed since the last time."""
        self._read()
        if self._was_replaced():
            self._read()  # what was written just before
            self.close()
            self._file = self._path.open("rb")
            self._read()

    def close(self) -> None:
        """Follow it no more."""
        if self._file is not None:
            self._file.close()

    def _read(self) -> None:
        if self._file is None:
            return
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        for line in lines:
            self._say(self._prefix + one_line(line.decode(errors="replace")))

    def _was_replaced(self) -> bool:
        try:
            now = self._path.stat()
        except FileNotFoundError:
            return False
        return self._file is None or not os.path.samestat(now, os.fstat(self._file.fileno()))
