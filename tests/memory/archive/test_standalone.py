"""The archive by itself: no Django, no Postgres, no model."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[3]

WITHOUT_DJANGO = """
import sys
for name in ("django", "psycopg", "torch", "sentence_transformers"):
    sys.modules[name] = None
from memory.archive import EmbedderError, MemoryManager

class Letters:
    version = "letters@1"
    def encode(self, texts):
        return [[text.count(letter) + 0.1 for letter in "abcdefgh"] for text in texts]

with MemoryManager(sys.argv[1], Letters(), dimensions=8) as manager:
    conversation = manager.create_conversation("Alone")
    manager.add_messages(conversation, [{"role": "user", "content": t} for t in ("aaa", "bbb")])
    print([hit.message.content for hit in manager.search("bab", 1)])
with MemoryManager(sys.argv[1] + "2") as manager:
    conversation = manager.create_conversation()
    try:
        manager.add_message(conversation, "user", "x")
    except EmbedderError as error:
        print(str(error).split(":")[0])
"""


def run(code: str, *arguments: str) -> str:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stderr == ""
    assert result.returncode == 0
    return result.stdout


def test_it_needs_neither_django_nor_postgres_nor_a_model(tmp_path: Path) -> None:
    found, missing = run(WITHOUT_DJANGO, str(tmp_path / "a.db")).splitlines()
    assert found == "['bbb']"
    assert missing.startswith("outside of a configured Django process (")
    assert missing.endswith(") the embedder has to be given")


def test_with_django_unconfigured_it_says_what_to_set(tmp_path: Path) -> None:
    code = """
import os, sys
os.environ.pop("DJANGO_SETTINGS_MODULE", None)
from memory.archive import EmbedderError, MemoryManager
with MemoryManager(sys.argv[1]) as manager:
    try:
        manager.search("x")
    except EmbedderError as error:
        print(error)
"""
    assert "or set DJANGO_SETTINGS_MODULE=konstruct.settings" in run(code, str(tmp_path / "a.db"))
