"""Following a log: whole lines, from now on, through rotations."""

from pathlib import Path

from konstruct.local.serving import LogTail


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


def test_only_complete_lines_after_the_start_are_printed(tmp_path: Path) -> None:
    path, lines = tmp_path / "web.log", []
    append(path, b"of the run before\n")
    tail = LogTail(path, "web | ", lines.append)
    tail.show()
    assert lines == []
    append(path, b"one\ntw")
    tail.show()
    assert lines == ["web | one"]
    append(path, b"o\n\xff\n")
    tail.show()
    assert lines == ["web | one", "web | two", "web | \N{REPLACEMENT CHARACTER}"]
    tail.close()


def test_terminal_control_characters_are_escaped(tmp_path: Path) -> None:
    path, lines = tmp_path / "web.log", []
    append(path, b"")
    tail = LogTail(path, "web | ", lines.append)
    append(path, "one\x1b[31m\rtwo\x9b2J\u2028three\u202efour \N{SNOWMAN}\n".encode())
    tail.show()
    assert lines == [r"web | one\x1b[31m\rtwo\x9b2J\u2028three\u202efour " + "\N{SNOWMAN}"]
    tail.close()


def test_no_line_is_lost_or_doubled_when_the_log_is_rotated(tmp_path: Path) -> None:
    path, lines = tmp_path / "web.log", []
    append(path, b"")
    tail = LogTail(path, "", lines.append)
    append(path, b"one\n")
    tail.show()
    append(path, b"two\n")
    path.rename(tmp_path / "web.log.1")
    append(path, b"three\n")
    tail.show()
    append(path, b"four\n")
    tail.show()
    assert lines == ["one", "two", "three", "four"]
    tail.close()
