"""An archive without a file: one database for all threads of an object, removed by close()."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memory import MemoryManager, SQLiteManager, VectorStore
from memory.archive import ArchiveClosed
from tests.memory.archive.processes import Letters


@pytest.fixture(autouse=True)
def nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_archive_in_memory_needs_no_file() -> None:
    with SQLiteManager(":memory:") as file:
        conversation = file.create_conversation("Trip")
        file.add_message(conversation, "user", "We fly.")
        assert [message.content for message in file.list_messages(conversation)] == ["We fly."]
        assert file.path == Path(":memory:")
        assert os.listdir() == []
    with pytest.raises(ArchiveClosed):
        file.count_messages()


def test_all_threads_of_one_object_share_one_database() -> None:
    with MemoryManager(":memory:", Letters(), dimensions=10) as manager:
        conversation = manager.create_conversation()

        def add(number: int) -> int:
            manager.add_message(conversation, "user", f"message {number}")
            return manager.count_messages()

        with ThreadPoolExecutor(8) as threads:
            counts = list(threads.map(add, range(80)))
        assert max(counts) == 80
        assert manager.count_messages(conversation) == 80
        assert len(manager.search("message", 100)) == 80


def test_two_objects_share_no_data() -> None:
    with SQLiteManager(":memory:") as one, SQLiteManager(Path(":memory:")) as other:
        one.create_conversation("Trip")
        assert (one.count_conversations(), other.count_conversations()) == (1, 0)


def test_a_vector_store_needs_no_file_either() -> None:
    with VectorStore(":memory:", dimensions=3) as store:
        store.store([1, 0, 0], id="v", message_id="m1")
        (hit,) = store.search([1, 0, 0])
        assert (hit.id, hit.message_id, hit.content) == ("v", "m1", None)
