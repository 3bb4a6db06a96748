"""`python -m memory.archive search`: from any folder, without Django's settings."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory.archive import MemoryManager
from memory.archive.__main__ import main
from memory.embeddings import embed, model_version
from tests.konstruct.running import PROJECT, run_python

SENT_AT = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
TABLES = "CREATE TABLE exported (kind TEXT, position INTEGER, row TEXT)"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive with two messages, and with the facts of an export."""
    path = tmp_path / "memory.db"
    with MemoryManager(path) as manager:
        trip = manager.create_conversation("Lisbon")
        texts = ("My sister Ana is allergic to peanuts.", "We fly on\nFriday.\x1b[2J")
        for text in texts:
            manager.add_message(trip, "user", text, timestamp=SENT_AT)
        database = manager.db
        database.execute(TABLES)
        for position, fact in enumerate(facts()):
            row = ("facts", position, json.dumps(fact))
            database.execute("INSERT INTO exported VALUES (?, ?, ?)", row)
    return path


def facts() -> list[dict[str, object]]:
    valid = {
        "memory_id": "1", "user_id": "maria", "metadata": {}, "version_of": None,
        "valid_from": "2026-01-01T00:00:00+00:00", "valid_to": None, "expires_at": None,
    }  # fmt: skip
    over = "2026-02-01T00:00:00+00:00"
    made: list[dict[str, object]] = [
        {**valid, "content": "Ana avoids nuts."},
        {**valid, "content": "The hotel is booked.", "user_id": None},
        {**valid, "content": "Ana eats peanuts.", "valid_to": over},
        {**valid, "content": "Ana likes peanuts.", "expires_at": over},
        {**valid, "content": "Ana hates peanuts.", "version_of": "1"},
        {**valid, "content": "Ana will eat peanuts.", "valid_from": "2999-01-01T00:00:00+00:00"},
    ]
    for fact, vector in zip(made, embed([str(fact["content"]) for fact in made]), strict=True):
        fact |= {"embedding": json.dumps(vector), "embedding_model": model_version()}
    made[1] |= {"embedding": "[]", "embedding_model": "another@1"}
    return made


@pytest.mark.slow
def test_messages_and_facts_are_found_from_an_empty_folder(archive: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    search = ("-m", "memory.archive", "search", archive, "Which foods must we avoid?")
    found = run_python("-W", "error", *search, cwd=empty, env=environment)
    assert (found.returncode, found.stderr) == (0, "")
    lines = found.stdout.splitlines()
    assert lines[0] == "Messages"
    assert lines[1].endswith(
        "2026-03-14 09:30 UTC  user in Lisbon: My sister Ana is allergic to peanuts."
    )
    assert lines[2].endswith("user in Lisbon: We fly on Friday.�[2J")
    assert lines[3] == "Facts"
    assert [line[7:] for line in lines[4:]] == [
        "Ana avoids nuts. (about maria)",
        "The hotel is booked.",
    ]
    assert float(lines[4][:5]) > float(lines[5][:5])
    assert list(empty.iterdir()) == []


def test_archive_without_facts_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with MemoryManager(tmp_path / "a.db"):
        pass
    assert main(["search", str(tmp_path / "a.db"), "Anything?"]) == 0
    assert capsys.readouterr().out == "Messages: none\nFacts: none\n"


def test_a_limit_is_for_each_kind(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "--limit", "1", str(archive), "Which foods must we avoid?"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_invalid_archive_is_an_error_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "letter.txt").write_text("Dear Ana, " * 1000)
    assert main(["search", str(tmp_path / "letter.txt"), "Ana?"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error: ")
    assert "is not a SQLite file: give the path of an archive" in output.err
    assert output.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["search", "nowhere.db", "?"], "there is no file 'nowhere.db'"),
        (["search", __file__, "?", "--limit", "x"], "invalid int value: 'x'"),
        ([], "the following arguments are required: command, file, question"),
    ],
)
def test_invalid_arguments_are_refused(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert why in capsys.readouterr().err
