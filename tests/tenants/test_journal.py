"""The journal of erasures: writing, reading, cut files and changed files."""

import json
import threading
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from tenants import journal

TENANT = UUID(int=7)


@pytest.fixture(autouse=True)
def path(settings: Any, tmp_path: Path) -> Path:
    """An empty journal."""
    found = tmp_path / "erasures.jsonl"
    found.touch()
    settings.ERASURE_JOURNAL = str(found)
    return found


def kinds(after: str = "") -> list[Any]:
    return [entry["kind"] for entry in journal.read(after)]


def test_threads_and_processes_append_complete_lines() -> None:
    threads = [
        threading.Thread(
            target=lambda: [journal.append(uuid4(), "k", text="x" * 9_000) for _ in range(20)]
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kinds() == ["k"] * 80


def test_a_last_line_that_was_cut_off_is_no_line_and_the_next_one_follows(path: Path) -> None:
    journal.append(TENANT, "whole")
    data = path.read_bytes()
    journal.append(TENANT, "cut off")
    path.write_bytes(path.read_bytes()[:-20])
    assert kinds() == ["whole"]
    journal.append(TENANT, "next")
    assert kinds() == ["whole", "next"]
    assert path.read_bytes().startswith(data)


def test_file_without_a_complete_line_has_no_position(path: Path) -> None:
    path.write_bytes(b'{"at":"2026')
    assert (journal.position(), journal.read()) == ("", [])
    journal.append(TENANT, "first")
    assert kinds() == ["first"]


@pytest.mark.parametrize("what", ["changed", "removed", "added", "swapped"])
def test_a_journal_that_was_tampered_with_is_refused(path: Path, what: str) -> None:
    for kind in ("one", "two", "three"):
        journal.append(TENANT, kind, users=["erased:1"])
    lines = path.read_bytes().splitlines(keepends=True)
    lines = {
        "changed": [lines[0], lines[1].replace(b"erased:1", b"erased:2"), lines[2]],
        "removed": [lines[0], lines[2]],
        "added": [*lines, lines[1]],
        "swapped": [lines[0], lines[2], lines[1]],
    }[what]
    path.write_bytes(b"".join(lines))
    with pytest.raises(journal.JournalBroken, match="was changed or removed"):
        journal.read()


def test_lines_of_a_former_secret_key_are_read_while_it_is_known(settings: Any) -> None:
    journal.append(TENANT, "before")
    former, settings.SECRET_KEY = settings.SECRET_KEY, "another" * 10
    with pytest.raises(journal.JournalBroken, match="add that key to SECRET_KEY_FALLBACKS"):
        journal.read()
    settings.SECRET_KEY_FALLBACKS = [former]
    journal.append(TENANT, "after")
    assert kinds() == ["before", "after"]
    assert len(journal.digests(TENANT, "fact", "1")) == 2


def test_shorter_copy_of_the_journal_is_not_accepted(path: Path) -> None:
    journal.append(TENANT, "one")
    older = path.read_bytes()
    journal.append(TENANT, "two")
    here = journal.position()
    path.write_bytes(older)
    with pytest.raises(journal.JournalBroken, match="another journal, or an older copy"):
        journal.read(here)


def test_a_full_disk_is_an_error(settings: Any) -> None:
    settings.ERASURE_JOURNAL = "/dev/full"
    with pytest.raises(journal.JournalUnavailable, match="No space left"):
        journal.append(TENANT, "one")


def test_no_journal_is_written_if_not_configured(settings: Any) -> None:
    settings.ERASURE_JOURNAL = ""
    assert (journal.append(TENANT, "one"), journal.position()) == (False, "")


def test_journal_line_contains_no_id(path: Path) -> None:
    digest = journal.digest(TENANT, "message", "4711")
    journal.append(TENANT, "message", erased=digest)
    (line,) = path.read_text().splitlines()
    assert "4711" not in line
    assert json.loads(line)["erased"] == digest
    assert digest != journal.digest(UUID(int=8), "message", "4711")
