"""Fixtures of failing indexing."""

import pytest

from memory import indexing
from memory.indexing import index_messages


@pytest.fixture
def failing(monkeypatch):
    """Fail the indexing of texts with a word: ``failing("poison")``."""

    def fail(word, error=ValueError):
        def index(messages, embedded):
            index_messages(messages, embedded)
            if any(word in message.content for message in messages):
                raise error(f"cannot index {word}")

        monkeypatch.setattr(indexing, "index_messages", index)

    return fail
