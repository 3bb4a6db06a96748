"""Helpers for archives that several threads and processes use."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memory.archive import MemoryManager, SQLiteManager
from tests.konstruct.running import PROJECT

# The start of every process: an archive without Django, with a small model.
PREAMBLE = """
import os, signal, sys
from memory.archive import MemoryManager, SQLiteManager, VectorStore

class Letters:
    version = "letters@1"
    def encode(self, texts):
        return [[text.count(letter) + 0.1 for letter in "0123456789"] for text in texts]

path = sys.argv[1]
def die():
    os.kill(os.getpid(), signal.SIGKILL)
"""


class Letters:
    """A small second model: counts of these letters."""

    version = "letters@1"

    def __init__(self, letters: str = "0123456789") -> None:
        self.letters = letters
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> Any:
        self.texts += texts
        return [[text.count(letter) + 0.1 for letter in self.letters] for text in texts]


def opened(path: Path) -> MemoryManager:
    return MemoryManager(path, Letters(), dimensions=10)


def verify(path: Path) -> None:
    """Check the file with SQLite, and that vectors, embeddings and messages agree."""
    with SQLiteManager(path) as file:
        assert file.rows("PRAGMA integrity_check") == [("ok",)]
        assert file.rows("PRAGMA foreign_key_check") == []
        numbers = file.rows("SELECT number FROM embeddings ORDER BY 1")
        assert file.rows("SELECT rowid FROM vectors ORDER BY 1") == numbers
        unknown = "embedding_id IS NOT NULL AND embedding_id NOT IN (SELECT id FROM embeddings)"
        assert file.rows(f"SELECT count(*) FROM messages WHERE {unknown}") == [(0,)]


def process(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + code, *map(str, arguments)],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
    )
