"""Processes killed while writing an archive: acknowledged writes exist, and none is partial."""

import signal
from pathlib import Path

import pytest

from tests.memory.archive.processes import opened, process, verify

pytestmark = pytest.mark.data


def test_process_killed_at_any_moment_keeps_confirmed_writes(path: Path) -> None:
    code = """
manager = MemoryManager(path, Letters(), dimensions=10)
number = int(sys.argv[2])
while True:
    conversation = manager.create_conversation(id=f"c{number}")
    ids = manager.add_messages(
        conversation, [{"role": "user", "content": f"{number} {m}"} for m in range(50)]
    )
    if number % 3 == 0 and number > int(sys.argv[2]):
        manager.delete_conversation(f"c{number - 1}")
    print(number, flush=True)
    number += 1
"""
    last_number = -1
    for round_ in range(12):
        worker = process(code, path, 1000 * round_)
        assert worker.stdout is not None
        for _ in range(1 + round_):
            last_number = int(worker.stdout.readline())
        worker.kill()
        rest = worker.communicate()[0].split()
        assert worker.returncode == -signal.SIGKILL
        # The last line may have been cut off by the kill.
        written = range(1000 * round_, max([last_number, *map(int, rest[:-1])]) + 1)

        verify(path)
        with opened(path) as manager:
            counts = {c.id: manager.count_messages(c.id) for c in manager.list_conversations()}
            assert set(counts.values()) <= {0, 50}
            # A number that leaves 2 is deleted by the next process, if it got so far.
            for number in written:
                if number % 3 != 2:
                    assert counts[f"c{number}"] == 50
                elif number != written[-1]:
                    assert f"c{number}" not in counts
            assert sum(counts.values()) == manager.model_versions()["letters@1"]
            for hit in manager.search(f"{written[0]}", 20):
                assert manager.get_message(hit.message.id) == hit.message


@pytest.mark.parametrize(
    "death",
    [
        "VectorStore.store_batch = lambda self, *a, **k: die()",
        "SQLiteManager.insert_messages = lambda self, *a, **k: die()",
        "before = SQLiteManager.insert_messages\n"
        "SQLiteManager.insert_messages = lambda self, *a, **k: (before(self, *a, **k), die())",
    ],
)
def test_kill_between_vector_and_message_stores_neither(path: Path, death: str) -> None:
    with opened(path) as manager:
        manager.add_message(manager.create_conversation(id="c"), "user", "stands")
    code = f"""
manager = MemoryManager(path, Letters(), dimensions=10)
{death}
manager.add_messages("c", [{{"role": "user", "content": str(n)}} for n in range(2000)])
"""
    killed = process(code, path)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    verify(path)
    with opened(path) as manager:
        assert [m.content for m in manager.list_messages("c")] == ["stands"]
        assert manager.model_versions() == {"letters@1": 1}
        assert len(manager.add_messages("c", [{"role": "user", "content": "goes on"}])) == 1
