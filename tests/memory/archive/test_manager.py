"""The complete archive with the real embedding model: consistent writes, search by meaning."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory.archive import (
    DuplicateId,
    MemoryManager,
    ModelMismatch,
    SQLiteManager,
    manager as manager_module,
)
from memory.embedding import embedder
from memory.exceptions import InvalidArgument
from tests.memory.archive.processes import Letters

TRIP = [
    {"role": "user", "content": "We fly to Lisbon on Friday morning."},
    {"role": "assistant", "content": "The hotel in the old town is booked for three nights."},
    {"role": "user", "content": "My sister Ana is allergic to peanuts."},
]
WORK = [
    {"role": "user", "content": "The quarterly report is due at the end of the month."},
    {"role": "assistant", "content": "I have moved the meeting with the auditors to Tuesday."},
]


@pytest.fixture
def manager(path: Path) -> Iterator[MemoryManager]:
    with MemoryManager(path) as manager:
        yield manager


def texts(hits: Any) -> list[str]:
    return [hit.message.content for hit in hits]


def test_message_is_found_by_meaning_after_a_restart(path: Path) -> None:
    with MemoryManager(path) as manager:
        trip, work = manager.create_conversation("Trip"), manager.create_conversation("Work")
        ids = manager.add_messages(trip, TRIP)
        manager.add_messages(work, WORK)

    with MemoryManager(path) as manager:
        food, *others = manager.search("Which foods must we avoid?", 3)
        assert food.message == manager.get_message(ids[2])
        assert food.message.content == "My sister Ana is allergic to peanuts."
        assert food.similarity > max(hit.similarity for hit in others)
        assert texts(manager.search("When does our plane leave?", 1)) == [TRIP[0]["content"]]
        (night,) = manager.search("Where do we sleep?", 1, conversation_id=trip)
        assert night.message.content == TRIP[1]["content"]
        assert manager.model_versions() == {embedder.model_version(): 5}


def test_conversations_and_messages_are_managed(manager: MemoryManager) -> None:
    moment = datetime(2023, 5, 8, tzinfo=UTC)
    id = manager.create_conversation("Trip", id="c", metadata={"a": 1}, created_at=moment)
    assert (id, manager.get_conversation("c").created_at) == ("c", moment)
    first = manager.add_message("c", "user", "one", id="m1", timestamp=moment)
    manager.add_messages("c", [{"role": "assistant", "content": "two", "id": "m2"}])
    assert first == "m1"
    assert manager.get_message("m1").timestamp == moment
    assert [m.id for m in manager.list_messages("c")] == ["m1", "m2"]
    newest = manager.list_messages("c", newest_first=True, limit=1, offset=0)
    assert [m.id for m in newest] == ["m2"]
    assert manager.update_conversation("c", title="New").title == "New"
    assert [c.title for c in manager.list_conversations(limit=5, offset=0)] == ["New"]
    assert (manager.count_conversations(), manager.count_messages("c")) == (1, 2)
    manager.delete_message("m1")
    assert texts(manager.search("one")) == ["two"]
    manager.delete_conversation("c")
    assert (manager.count_conversations(), manager.count_messages()) == (0, 0)
    assert manager.model_versions() == {}


def test_message_and_vector_are_written_in_one_transaction(
    manager: MemoryManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = manager.create_conversation()
    manager.add_message(conversation, "user", "stands", id="m")
    version = embedder.model_version()

    # The vectors are written, then a message fails.
    with pytest.raises(DuplicateId, match="there is a message with id='m' already"):
        manager.add_messages(conversation, [*TRIP, {"role": "user", "content": "x", "id": "m"}])
    assert (manager.count_messages(), manager.model_versions()) == (1, {version: 1})

    def broken(texts: Sequence[str]) -> Any:
        raise RuntimeError(f"no memory left for {len(texts)} texts")

    monkeypatch.setattr(embedder.get_embedder(), "encode", broken)
    with pytest.raises(RuntimeError, match="no memory left for 1 texts"):
        manager.add_message(conversation, "user", "x")
    assert (manager.count_messages(), manager.model_versions()) == (1, {version: 1})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.search(" \n"), r"query=' \\n' holds no text to search for"),
        (lambda m: m.search(7), "query=7 is not text"),
        (lambda m: m.search("x", 0), "k=0 is not a whole number of at least 1"),
    ],
)
def test_bad_input_is_refused(manager: MemoryManager, call: Any, message: str) -> None:
    manager.create_conversation(id="c")
    with pytest.raises(InvalidArgument, match=message):
        call(manager)
    assert manager.count_messages() == 0


def test_the_model_is_not_loaded_before_something_is_embedded(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load() -> None:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr(embedder, "get_embedder", load)
    with MemoryManager(path) as manager:
        conversation = manager.create_conversation()
        manager.add_messages(conversation, [])
        assert manager.list_messages(conversation) == []
        with pytest.raises(AssertionError, match="the model was loaded"):
            manager.search("x")


def test_messages_of_another_model_are_not_forgotten_in_silence(path: Path) -> None:
    old, new = Letters("abcdefgh"), Letters("abcdefgh")
    new.version = "letters@2"
    with MemoryManager(path, old, dimensions=8) as manager:
        conversation = manager.create_conversation()
        manager.add_messages(conversation, TRIP)
    with MemoryManager(path, new, dimensions=8) as manager:
        manager.add_message(conversation, "user", "abc")
        assert manager.model_versions() == {"letters@1": 3, "letters@2": 1}
        with pytest.raises(
            ModelMismatch, match=r"has messages that 'letters@1' embedded, .* or call reembed"
        ):
            manager.search("abc")

        assert manager.reembed() == 3

        assert manager.model_versions() == {"letters@2": 4}
        assert texts(manager.search("abc", 1)) == ["abc"]
        assert len(manager.search("abc")) == 4
        assert manager.reembed() == 0


def test_interrupted_reembedding_continues(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager_module, "REEMBEDDING_BATCH", 4)
    with SQLiteManager(path) as file:
        conversation = file.create_conversation()
        file.add_messages(
            conversation,
            [{"role": "user", "content": f"text {n}" if n % 5 else " "} for n in range(15)],
        )
    embedder = Letters("abcdefgh")
    working = embedder.encode

    def fails_at_the_third_batch(texts: Sequence[str]) -> Any:
        if len(embedder.texts) > 6:
            raise RuntimeError("stopped")
        return working(texts)

    embedder.encode = fails_at_the_third_batch  # type: ignore[method-assign]  # the fault under test
    with MemoryManager(path, embedder, dimensions=8) as manager:
        with pytest.raises(RuntimeError, match="stopped"):
            manager.reembed()
        done = len(embedder.texts)
        assert manager.model_versions() == {"letters@1": done}
        embedder.encode = working  # type: ignore[method-assign]  # mended
        assert manager.reembed() == 12 - done
        assert sorted(embedder.texts) == sorted(f"text {n}" for n in range(15) if n % 5)
