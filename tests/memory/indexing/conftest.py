"""Fixtures of failing indexing."""

import pytest

from memory.indexing import embedding_jobs
from memory.indexing.service import index_messages


@pytest.fixture
def failing(monkeypatch):
    """Fail the indexing of texts with a word: ``failing("poison")``."""

    def fail(word, error=ValueError):
        def index(messages, embedded):
            index_messages(messages, embedded)
            if any(word in message.content for message in messages):
                raise error(f"cannot index {word}")

        monkeypatch.setattr(embedding_jobs, "index_messages", index)

    return fail
