"""Threads and processes that share an archive: no lost and no partial writes."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memory.archive import ArchiveBusy, ArchiveClosed, SQLiteManager, database
from tests.memory.archive.processes import opened, process, verify

pytestmark = pytest.mark.long


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Return the results of each thread's `work`. All start at once."""
    barrier = threading.Barrier(count)

    def begin(number: int) -> Any:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


def test_threads_share_one_manager(path: Path) -> None:
    with opened(path) as manager:
        conversation = manager.create_conversation()

        def write_and_read(thread: int) -> None:
            own = manager.create_conversation(str(thread))
            for n in range(10):
                id = manager.add_message(own, "user", f"{thread} says {n}")
                manager.add_messages(
                    conversation, [{"role": "user", "content": f"{thread}{n}{m}"} for m in "ab"]
                )
                (hit,) = manager.search(f"{thread} says {n}", 1, conversation_id=own)
                assert hit.message.conversation_id == own
                assert manager.get_message(id).content == f"{thread} says {n}"

        in_threads(8, write_and_read)
        assert manager.count_messages() == 8 * 30
        assert manager.model_versions() == {"letters@1": 8 * 30}
        shared = [m.content for m in manager.list_messages(conversation)]
        assert sorted(shared) == sorted(
            f"{thread}{n}{m}" for thread in range(8) for n in range(10) for m in "ab"
        )
    verify(path)
    assert os.listdir(path.parent) == ["memory.db"]


def test_writer_gets_an_error_after_the_lock_timeout(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_MS", 50)
    with SQLiteManager(path) as file, SQLiteManager(path) as other:
        with file.transaction():
            with pytest.raises(ArchiveBusy, match="is being written by another process"):
                other.create_conversation()
            assert other.count_conversations() == 0
        other.create_conversation()
        assert file.count_conversations() == 1


def test_closed_store_raises_in_every_thread(path: Path) -> None:
    file = SQLiteManager(path)
    opened_in_thread, closed = threading.Event(), threading.Event()

    def use() -> BaseException | None:
        file.count_conversations()
        opened_in_thread.set()
        closed.wait()
        try:
            file.count_conversations()
        except ArchiveClosed as error:
            return error
        return None

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(use)
        opened_in_thread.wait()
        file.close()
        closed.set()
        assert "was closed: open it again" in str(future.result())
    with pytest.raises(ArchiveClosed, match="was closed: open it again"):
        file.create_conversation()
    file.close()
    assert os.listdir(path.parent) == ["memory.db"]


def test_many_processes_create_and_fill_one_file_at_once(path: Path) -> None:
    code = """
with MemoryManager(path, Letters(), dimensions=10) as manager:
    conversation = manager.create_conversation(str(os.getpid()))
    for n in range(20):
        manager.add_messages(
            conversation, [{"role": "user", "content": f"{n} {m}"} for m in range(5)]
        )
        assert len(manager.search(str(n), 3)) == 3
"""
    processes = [process(code, path) for _ in range(6)]
    assert [process.wait() for process in processes] == [0] * 6
    for finished in processes:
        finished.communicate()
    with opened(path) as manager:
        conversations = manager.list_conversations()
        assert {c.title for c in conversations} == {str(process.pid) for process in processes}
        for conversation in conversations:
            assert [m.content for m in manager.list_messages(conversation.id)] == [
                f"{n} {m}" for n in range(20) for m in range(5)
            ]
        assert manager.model_versions() == {"letters@1": 600}
    verify(path)
