"""Conversations and messages: stored rows are read back, and invalid values are named."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from memory.archive import Conversation, DuplicateId, Message, SQLiteManager, UnknownId
from memory.exceptions import InvalidArgument

MAY = datetime(2023, 5, 8, 13, 56, 0, 123456, tzinfo=UTC)


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteManager]:
    with SQLiteManager(path) as manager:
        yield manager


def contents(messages: list[Message]) -> list[str]:
    return [message.content for message in messages]


def test_a_conversation_and_its_messages_survive_a_restart(path: Path) -> None:
    before = datetime.now(UTC)
    with SQLiteManager(path) as store:
        conversation = store.create_conversation(
            "Lisbon", metadata={"tags": ["trip"], "n": 1.5, "ü": None}, created_at=MAY
        )
        first = store.add_message(conversation, "user", "When do we fly?", timestamp=MAY)
        second = store.add_message(conversation, "assistant", "On Friday.", embedding_id="v1")
    after = datetime.now(UTC)

    with SQLiteManager(path) as store:
        read = store.get_conversation(conversation)
        assert read == Conversation(
            id=conversation,
            title="Lisbon",
            created_at=MAY,
            updated_at=read.updated_at,
            metadata={"tags": ["trip"], "n": 1.5, "ü": None},
        )
        assert before <= read.updated_at <= after
        question, answer = store.list_messages(conversation)
        assert question == Message(first, conversation, "user", "When do we fly?", MAY, None)
        assert answer == Message(
            second, conversation, "assistant", "On Friday.", answer.timestamp, "v1"
        )
        assert before <= answer.timestamp <= after
        assert store.get_message(second) == answer


def test_the_tables_are_the_contracts(store: SQLiteManager) -> None:
    for table, columns in {
        "conversations": {"id", "title", "created_at", "updated_at", "metadata"},
        "messages": {"id", "conversation_id", "role", "content", "timestamp", "embedding_id"},
    }.items():
        rows = store.rows("SELECT name FROM pragma_table_info(?)", (table,))
        assert columns <= {name for (name,) in rows}


def test_messages_are_ordered_by_time_then_insertion(store: SQLiteManager) -> None:
    conversation = store.create_conversation()
    store.add_message(conversation, "user", "later", timestamp=MAY + timedelta(microseconds=1))
    for text in ("first", "second", "third"):
        store.add_message(conversation, "user", text, timestamp=MAY)
    # The same moment as MAY, in another time zone.
    zone = timezone(timedelta(hours=-7))
    store.add_message(conversation, "user", "fourth", timestamp=MAY.astimezone(zone))

    in_order = ["first", "second", "third", "fourth", "later"]
    assert contents(store.list_messages(conversation)) == in_order
    assert contents(store.list_messages(conversation, newest_first=True)) == in_order[::-1]
    assert contents(store.list_messages(conversation, limit=2, offset=1)) == ["second", "third"]
    assert contents(store.list_messages(conversation, limit=1, newest_first=True)) == ["later"]
    assert store.list_messages(conversation, limit=0) == []
    assert store.list_messages(conversation, offset=5) == []


def test_update_changes_only_given_fields(store: SQLiteManager) -> None:
    id = store.create_conversation("Old", metadata={"a": 1})
    created = store.get_conversation(id)

    assert store.update_conversation(id, title="New").metadata == {"a": 1}
    emptied = store.update_conversation(id, title="", metadata={})
    assert (emptied.title, emptied.metadata, emptied.created_at) == ("", {}, created.created_at)
    assert emptied.updated_at > created.updated_at
    assert store.get_conversation(id) == emptied


def test_batch_is_all_or_nothing(store: SQLiteManager) -> None:
    conversation = store.create_conversation()
    store.add_message(conversation, "user", "stands", id="taken")
    before = store.get_conversation(conversation)

    with pytest.raises(DuplicateId, match="there is a message with id='taken' already"):
        store.add_messages(
            conversation,
            [
                {"role": "user", "content": "new"},
                {"role": "user", "content": "again", "id": "taken"},
            ],
        )
    with pytest.raises(DuplicateId, match="there is a message with embedding_id='v' already"):
        store.add_messages(
            conversation,
            [{"role": "user", "content": text, "embedding_id": "v"} for text in "ab"],
        )
    with pytest.raises(InvalidArgument, match=r"messages\[1\]: role='robot' is not one of user, "):
        store.add_messages(
            conversation,
            [{"role": "user", "content": "a"}, {"role": "robot", "content": "b"}],
        )
    assert contents(store.list_messages(conversation)) == ["stands"]
    assert store.get_conversation(conversation) == before


def test_deleting_a_conversation_takes_its_messages_and_no_others(store: SQLiteManager) -> None:
    deleted, kept = store.create_conversation("gone"), store.create_conversation("kept")
    lost = store.add_message(deleted, "user", "a")
    store.add_message(kept, "user", "b")

    store.delete_conversation(deleted)

    assert [c.title for c in store.list_conversations()] == ["kept"]
    assert store.count_messages() == 1
    with pytest.raises(UnknownId, match=f"there is no message with id='{lost}'"):
        store.get_message(lost)


def test_existing_conversation_id_is_refused(store: SQLiteManager) -> None:
    store.create_conversation("first", id="c")
    with pytest.raises(DuplicateId, match="there is a conversation with id='c' already"):
        store.create_conversation("second", id="c")
    assert store.get_conversation("c").title == "first"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"role": "wizard"}, "role='wizard' is not one of user, assistant"),
        ({"content": None}, "content=None is not text"),
        ({"content": "a\x00b"}, r"content='a\\x00b' holds U\+0000 \(NUL\) at 1"),
        ({"id": ""}, "id='' is empty"),
        ({"id": "x" * 1025}, "is longer than 1024 bytes"),
        ({"timestamp": "yesterday"}, "timestamp='yesterday' is not a time with a time zone"),
        ({"timestamp": datetime(2023, 5, 8)}, "is not a time with a time zone"),  # noqa: DTZ001
        (
            {"timestamp": datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))},
            "lies outside the years 1 to 9999 in UTC",
        ),
        ({"embedding_id": 7}, "embedding_id=7 is not text"),
    ],
)
def test_invalid_message_is_refused(
    store: SQLiteManager, arguments: dict[str, Any], message: str
) -> None:
    conversation = store.create_conversation()
    values = {"role": "user", "content": "hello", **arguments}
    with pytest.raises(InvalidArgument, match=message):
        store.add_message(conversation, **values)
    with pytest.raises(InvalidArgument, match=r"^messages\[0\]: .*" + message):
        store.add_messages(conversation, [values])
    assert store.count_messages() == 0


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ([1], "is not a JSON object"),
        ({"x": float("nan")}, "is not a JSON object"),
        ({"x": (1, 2)}, "is not a JSON object"),
        ({"x": "\ud800"}, "half of a surrogate pair"),
    ],
)
def test_metadata_that_json_would_change_is_refused(
    store: SQLiteManager, metadata: Any, message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        store.create_conversation(metadata=metadata)
    assert store.count_conversations() == 0


@pytest.mark.parametrize("page", [{"limit": -1}, {"limit": 1.5}, {"offset": -1}, {"limit": True}])
def test_invalid_page_is_refused(store: SQLiteManager, page: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="is not a whole number of at least 0"):
        store.list_conversations(**page)


def test_transaction_is_rolled_back_completely_and_a_nested_one_alone(store: SQLiteManager) -> None:
    def add_and_fail(conversation: str) -> None:
        with store.transaction():
            store.add_message(conversation, "user", "undone")
            store.create_conversation("undone")
            raise KeyError

    with store.transaction():
        kept = store.create_conversation("kept")
        with pytest.raises(KeyError):
            add_and_fail(kept)
    with pytest.raises(KeyError):
        add_and_fail(kept)
    assert [c.title for c in store.list_conversations()] == ["kept"]
    assert store.count_messages() == 0
