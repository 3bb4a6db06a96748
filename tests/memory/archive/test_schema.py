"""Files of every kind: earlier version, later version, another program's, damaged, empty."""

import os
from pathlib import Path
from typing import Any

import apsw
import pytest

from memory.archive import (
    ArchiveUnavailable,
    MemoryManager,
    NewerArchive,
    NotAnArchive,
    SQLiteManager,
    VectorStore,
    database as archive_database,
)
from memory.exceptions import InvalidArgument


def database(path: Path, sql: str) -> Path:
    connection = apsw.Connection(str(path))
    connection.execute(sql)
    connection.close()
    return path


def tables(path: Path) -> set[str]:
    connection = apsw.Connection(str(path))
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
    connection.close()
    return names


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """An archive of many pages."""
    path = tmp_path / "filled.db"
    with SQLiteManager(path) as file, VectorStore(file) as vectors:
        conversation = file.create_conversation()
        file.add_messages(
            conversation, [{"role": "user", "content": "x" * 2000} for _ in range(100)]
        )
        vectors.store_batch([[1.0] * 384] * 10)
    return path


def test_a_new_file_has_the_latest_version(tmp_path: Path) -> None:
    with SQLiteManager(tmp_path / "new.db") as file:
        assert (
            archive_database.version_of(file.db, file.path) == len(archive_database.MIGRATIONS) == 1
        )
        assert file.rows("PRAGMA application_id") == [(0x4B6E7374,)]
        assert file.rows("PRAGMA journal_mode") == [("wal",)]
        assert file.rows("PRAGMA page_size") == [(16384,)]


def test_file_of_an_earlier_version_is_migrated_with_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.db"
    with SQLiteManager(path) as file:
        conversation = file.create_conversation("Trip")
        file.add_message(conversation, "user", "When do we fly?")
    broken = "CREATE TABLE half (x); INSERT INTO half VALUES (1); SELECT no_such_function();"
    monkeypatch.setattr(
        archive_database, "MIGRATIONS", (*archive_database.MIGRATIONS, "CREATE TABLE b (x)", broken)
    )
    with pytest.raises(apsw.SQLError, match="no_such_function"):
        SQLiteManager(path)
    assert "half" not in tables(path)

    monkeypatch.setattr(archive_database, "MIGRATIONS", archive_database.MIGRATIONS[:2])
    with SQLiteManager(path) as file:
        assert archive_database.version_of(file.db, file.path) == 2
        assert [m.content for m in file.list_messages(conversation)] == ["When do we fly?"]
    assert "b" in tables(path)


def test_a_file_of_a_later_version_is_refused_and_left_alone(filled: Path) -> None:
    database(filled, "PRAGMA user_version = 9")
    before = filled.read_bytes()
    for opener in (SQLiteManager, VectorStore, MemoryManager):
        with pytest.raises(
            NewerArchive, match="has schema version 9; this program knows up to 1: update Konstruct"
        ):
            opener(filled)
    assert filled.read_bytes() == before


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE auth_user (id INTEGER)",
        "PRAGMA user_version = 1; CREATE TABLE conversations (id TEXT)",
        "PRAGMA application_id = 77",
    ],
)
def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path, sql: str) -> None:
    path = database(tmp_path / "django.sqlite3", sql)
    before = path.read_bytes()
    for opener in (SQLiteManager, VectorStore, MemoryManager):
        with pytest.raises(NotAnArchive, match=r"is the SQLite database of another program: give"):
            opener(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["django.sqlite3"]


@pytest.mark.parametrize("content", [b"hello", b"PK\x03\x04" * 2000, os.urandom(10_000)])
def test_file_that_is_not_a_database_is_refused_and_unchanged(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "letter.txt"
    path.write_bytes(content)
    with pytest.raises(NotAnArchive, match=r"letter.txt is not a SQLite file: give the path"):
        MemoryManager(path)
    assert path.read_bytes() == content


def test_an_empty_file_becomes_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "made by tempfile"
    path.touch()
    with SQLiteManager(path) as file:
        assert archive_database.version_of(file.db, file.path) == 1


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("no/such/a.db", ArchiveUnavailable, "no/such, the directory of archive 'a.db', does not"),
        (".", ArchiveUnavailable, "cannot be opened, read or written"),
        ("", InvalidArgument, "path='' is not the path of a file"),
        ("a\x00b", InvalidArgument, "is not the path of a file"),
        ("x" * 300, ArchiveUnavailable, "cannot be opened, read or written"),
        (None, InvalidArgument, "path=None is not the path of a file"),
        (7, InvalidArgument, "path=7 is not the path of a file"),
    ],
)
def test_invalid_path_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Any, error: type[Exception], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for opener in (SQLiteManager, VectorStore, MemoryManager):
        with pytest.raises(error, match=message):
            opener(path)
    assert os.listdir(tmp_path) == []


def test_full_disk_and_read_only_file_are_reported_and_change_nothing(filled: Path) -> None:
    with SQLiteManager(filled) as file:
        conversation = file.list_conversations()[0].id
        batch = [{"role": "user", "content": "y" * 2000} for _ in range(100)]
        for limit, lifted, message in (
            ("max_page_count = 1", "max_page_count = 1000000", "disk is full, make room"),
            (
                "query_only = 1",
                "query_only = 0",
                "cannot be opened, read or written: check the permissions",
            ),
        ):
            file.rows(f"PRAGMA {limit}")
            with pytest.raises(ArchiveUnavailable, match=message):
                file.add_messages(conversation, batch)
            assert file.count_messages() == 100
            file.rows(f"PRAGMA {lifted}")
        file.add_messages(conversation, batch)
        assert file.count_messages() == 200
