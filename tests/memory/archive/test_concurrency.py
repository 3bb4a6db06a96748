"""Threads and processes that share an archive: no lost and no partial writes."""

import os
import threading
import time
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


def test_a_batch_is_never_seen_in_part(path: Path) -> None:
    with opened(path) as manager:
        conversation = manager.create_conversation()
        writing = threading.Event()

        def write_or_count(thread: int) -> set[int]:
            if thread:
                seen = set()
                while not writing.is_set():
                    seen.add(manager.count_messages(conversation))
                    seen.add(manager.model_versions().get("letters@1", 0))
                return seen
            try:
                for _ in range(10):
                    manager.add_messages(
                        conversation, [{"role": "user", "content": str(n)} for n in range(100)]
                    )
            finally:
                writing.set()
            return set()

        seen = set().union(*in_threads(3, write_or_count))
        assert seen <= set(range(0, 1001, 100))
        assert manager.count_messages() == 1000


def test_reading_does_not_stop_a_writer(path: Path) -> None:
    with SQLiteManager(path) as file, SQLiteManager(path) as other:
        file.db.execute("BEGIN")
        assert file.count_conversations() == 0
        other.create_conversation()
        assert file.count_conversations() == 0
        file.db.execute("COMMIT")
        assert file.count_conversations() == 1


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


def test_a_thread_waits_for_another_ones_transaction(path: Path) -> None:
    with SQLiteManager(path) as file, ThreadPoolExecutor(1) as pool:
        with file.transaction():
            first = file.create_conversation("first")
            # The waiting thread must not block this one.
            waiting = pool.submit(file.create_conversation, "second")
            time.sleep(0.3)
            assert not waiting.done()
        assert first in {c.id for c in file.list_conversations()}
        assert file.get_conversation(waiting.result()).title == "second"


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


def test_closing_waits_for_another_thread_that_reads(path: Path) -> None:
    with SQLiteManager(path) as file:
        reading = threading.Event()

        def read() -> int:
            with file.transaction() as connection:
                connection.create_scalar_function("started", lambda: reading.set() or 1)
                return connection.execute(
                    "WITH RECURSIVE n (i) AS"
                    " (SELECT started() UNION ALL SELECT i + 1 FROM n WHERE i < 2000000)"
                    " SELECT max(i) FROM n"
                ).get

        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(read)
            reading.wait()
            file.close()
            assert result.result() == 2000000


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


def test_many_processes_migrate_one_file_at_once(path: Path) -> None:
    code = """
steps = tuple(f"CREATE TABLE step{n} (x); INSERT INTO step{n} VALUES (1)" for n in range(20))
schema.MIGRATIONS = (*schema.MIGRATIONS, *steps)
with SQLiteManager(path) as file:
    assert [file.rows(f"SELECT count(*) FROM step{n}") for n in range(20)] == [[(1,)]] * 20
    print(file.schema_version)
"""
    SQLiteManager(path).close()
    processes = [process(code, path) for _ in range(4)]
    assert [process.communicate()[0] for process in processes] == ["23\n"] * 4
