"""The archive alone: without Django, Postgres and settings."""

from pathlib import Path

import pytest

from tests.konstruct.running import run_python

pytestmark = pytest.mark.slow


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
    manager.add_messages(
        conversation,
        [{"role": "user", "content": t} for t in ("Ann has a beagle.", "It rains in Rome.")],
    )
    print([hit.message.content for hit in manager.search("Which dog does Ann have?", 1)])
import memory.embedding
del memory.embedding.embedder
sys.modules["memory.embedding.embedder"] = None
with MemoryManager(sys.argv[1] + "3") as manager:
    conversation = manager.create_conversation()
    try:
        manager.add_message(conversation, "user", "x")
    except EmbedderError as error:
        print(error)
"""


def run(code: str, *arguments: str) -> str:
    result = run_python("-W", "error", "-c", code, *arguments)
    assert result.stderr == ""
    assert result.returncode == 0
    return result.stdout


def test_archive_needs_no_django_postgres_or_settings(tmp_path: Path) -> None:
    found, by_the_model, missing = run(WITHOUT_DJANGO, str(tmp_path / "a.db")).splitlines()
    assert found == "['bbb']"
    assert by_the_model == "['Ann has a beagle.']"
    assert missing.startswith("the product's embedding model cannot be used (")
    assert missing.endswith("or give an embedder: MemoryManager(path, embedder=...)")
