"""Archives that several threads and processes have open."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from memory.archive import MemoryManager

REPOSITORY = Path(__file__).parents[3]

# What every process of these tests begins with: an archive without Django, with a model made here.
PREAMBLE = """
import os, signal, sys
from memory.archive import MemoryManager, SQLiteManager, VectorStore
from memory.archive import schema

class Letters:
    version = "letters@1"
    def encode(self, texts):
        return [[text.count(letter) + 0.1 for letter in "0123456789"] for text in texts]

path = sys.argv[1]
def die():
    os.kill(os.getpid(), signal.SIGKILL)
"""


class Letters:
    version = "letters@1"

    def encode(self, texts: Any) -> Any:
        return [[text.count(letter) + 0.1 for letter in "0123456789"] for text in texts]


def opened(path: Path) -> MemoryManager:
    return MemoryManager(path, Letters(), dimensions=10)


def process(code: str, path: Path, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + code, str(path)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )
