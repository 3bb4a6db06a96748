"""Files of other systems: what is read from each, and what is refused. Without a database."""

import io
import json
import stat
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from konstruct.orchestrator.exceptions import ImportRefused
from konstruct.orchestrator.history_import.files import Line, Problem, Row, Source
from konstruct.orchestrator.history_import.importing import Options, _parse as parse, recognize

EXPORTS = Path(__file__).parent / "exports"
ANDROID = "WhatsApp-Chat mit Maria.txt"
TICKETS = {"thread": "Ticket", "time": "Wann", "author": "Wer", "text": "Nachricht"}
# By file: the format, and of each row the author, the text and the attached files.
TEXTS = json.loads((EXPORTS.parent / "expected.json").read_text())


def read(content: Path | bytes, name: str, **options: Any) -> list[Row | Line | Problem]:
    """Return what is found in a source."""
    with Source.open(content, name) as source:
        chosen = Options(**options)
        return [*parse(source, chosen.format or recognize(source), chosen)]


def whatsapp(text: str, **options: Any) -> list[Any]:
    return read(text.encode(), "chat.txt", **options)


def packed(entries: dict[str, str], **attributes: Any) -> bytes:
    """Return a zip archive; `attributes` are those of its entries."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            entry = zipfile.ZipInfo(name)
            for attribute, value in attributes.items():
                setattr(entry, attribute, value)
            archive.writestr(entry, content)
    return file.getvalue()


@pytest.mark.parametrize("name", TEXTS)
def test_texts_and_authors_of_each_format(name: str) -> None:
    format, texts = TEXTS[name]
    columns = TICKETS if format == "csv" else {}
    found = read(EXPORTS / name, name, columns=columns, format="csv" if columns else "")
    rows = [row for row in found if isinstance(row, Row)]
    assert [[r.author or r.role or r.user_id or "", r.text, [*r.media]] for r in rows] == texts
    with Source.open(EXPORTS / name, name) as source:
        assert columns or recognize(source) == format


def test_times_ids_and_conversations() -> None:
    (_, first, *_) = read(EXPORTS / "slack", "slack")
    assert isinstance(first, Row)
    assert first.time == datetime(2026, 3, 14, 9, 1, 0, 200, UTC)
    assert first.thread == "C0SUPPORT/1773478860.000200"
    assert first.external_id == "slack:C0SUPPORT/1773478860.000200"
    (_, first, *_) = read(EXPORTS / "result.json", "result.json")
    assert isinstance(first, Row)
    assert (first.thread, first.external_id) == ("telegram:4711", "telegram:4711/2")
    name = "messages.html"
    (said_by_telegram, first, *_, last) = read(
        packed({name: (EXPORTS / name).read_text()}), "a.zip"
    )
    assert said_by_telegram == Problem("messages.html 1", "a message of Telegram itself")
    assert isinstance(first, Row)
    assert isinstance(last, Row)
    assert (first.thread, first.external_id) == ("telegram:Ада & Co", "telegram:Ада & Co/2")
    assert last.time == datetime(2026, 3, 14, 12, 3)  # noqa: DTZ001 (the export has no zone)
    assert first.time == datetime(2026, 3, 14, 9, 1, tzinfo=UTC)
    (_, *rows) = read(EXPORTS / "_chat.txt", "_chat.txt")
    times = [f"{row.time:%Y-%m-%d %H:%M:%S}" for row in rows if isinstance(row, Row)]
    assert times[:2] == ["2026-03-01 21:15:30", "2026-03-01 21:16:02"]
    assert times[3:] == ["2026-03-14 00:05:00", "2026-03-14 00:06:00"]


def test_what_is_not_said_by_anybody_is_reported_with_its_place() -> None:
    problems = {
        name: [(row.place, row.reason) for row in read(EXPORTS / name, name)
               if isinstance(row, Problem)]
        for name in (ANDROID, "sharegpt.jsonl", "zep.json")
    }  # fmt: skip
    assert problems[ANDROID] == [("1", "a message of WhatsApp itself")]
    assert problems["sharegpt.jsonl"] == [
        ("1 message 1", "a message with the role system"),
        ("2 message 2", "the role 'narrator' is neither a person's nor an agent's"),
    ]
    assert problems["zep.json"][1] == ("item 1 fact 2", "the fact is not valid any more")


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("31.12.25, 21:15 - M: Hi", "2025-12-31 21:15"),
        ("31/12/2025, 9:15 p. m. - M: Hi", "2025-12-31 21:15"),
        ("31/12/25, 9:15\u202fp.\u00a0m. - M: Hi", "2025-12-31 21:15"),
        ("31/12/25, 12:15\u202fa.\u00a0m. - M: Hi", "2025-12-31 00:15"),
        ("2025/12/31 下午9:15 - M: Hi", "2025-12-31 21:15"),
        ("[2025/12/31 上午12:15:07] M: Hi", "2025-12-31 00:15"),
        ("2025. 12. 31. 오후 9:15 - M: Hi", "2025-12-31 21:15"),
        ("[2025. 12. 31. 오전 9:15:07] M: Hi", "2025-12-31 09:15"),
        ("2025/12/31 午後9:15 - M: Hi", "2025-12-31 21:15"),
        ("[12/31/25, 9:15:07\u202fPM] M: Hi", "2025-12-31 21:15"),
        ("[31.12.2025 klo 21.15.07] M: Hi", "2025-12-31 21:15"),
        ("2025-12-31, 21:15 - M: Hi", "2025-12-31 21:15"),
        ("31-12-2025 21:15 - M: Hi", "2025-12-31 21:15"),
    ],
)
def test_dates_of_several_countries(line: str, time: str) -> None:
    (row,) = whatsapp(f"{line}\n")
    assert (f"{row.time:%Y-%m-%d %H:%M}", row.author, row.text) == (time, "M", "Hi")


def test_the_order_of_dates_is_that_of_the_whole_file_or_an_option() -> None:
    chat = "3/4/26, 10:00 - M: Hi\n3/5/26, 10:00 - M: Hi\n"
    with pytest.raises(ImportRefused, match=r"can be read as dmy / mdy .* choose the order"):
        whatsapp(chat)
    assert [row.time.month for row in whatsapp(chat, date_order="dmy")] == [4, 5]
    assert [row.time.month for row in whatsapp(f"{chat}3/31/26, 10:00 - M: Hi")] == [3, 3, 3]
    with pytest.raises(ImportRefused, match=r"chat.txt:4: 31/3/26 is no date in the order"):
        whatsapp(f"{chat}3/31/26, 10:00 - M: Hi\n31/3/26, 10:00 - M: Hi")


def test_a_message_may_have_lines_marks_and_colons() -> None:
    (row, other) = whatsapp("13.1.26, 10:00 - \u200fנועה: 10:30: כן\n14.1.26 is a date\n\n"
                            "13.1.26, 10:01 - Bo: <3\n")  # fmt: skip
    assert (row.author, row.text) == ("נועה", "10:30: כן\n14.1.26 is a date\n")
    assert (other.author, other.text, other.media) == ("Bo", "<3", ())


def test_an_archive_is_read_as_its_files() -> None:
    chat = (EXPORTS / "_chat.txt").read_text()
    content = packed({"_chat.txt": chat, "photo.jpg": "x", "__MACOSX/._chat.txt": "x"})
    assert len(read(content, "WhatsApp Chat - Tom.zip")) == 6
    slack = {path.relative_to(EXPORTS / "slack").as_posix(): path.read_text()
             for path in (EXPORTS / "slack").rglob("*.json")}  # fmt: skip
    assert len(read(packed({f"My export/{name}": text for name, text in slack.items()}), "s.zip"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04 and then nothing", "damaged archive"),
        (packed({"../../etc/cron.txt": "x"}), "leads out of the archive"),
        (packed({"/etc/cron.txt": "x"}), "leads out of the archive"),
        (packed({"C:\\cron.txt": "x"}), "leads out of the archive"),
        (packed({"a.txt": "/etc/passwd"}, external_attr=(stat.S_IFLNK | 0o777) << 16), "a link"),
        (packed({"photo.jpg": "x"}), "has no file that ends with .json"),
        (packed({}), "has no file that ends with .json"),
        (packed({"a.txt": "0" * 24_000_001}), "more than 24,000,000 bytes"),
        ("Größe;Text\n1;ja\n".encode("latin-1"), r"x:1 is not UTF-8 \(byte 0xf6\)"),
        ("Hi".encode("utf-16"), "x:1 is UTF-16: save the file as UTF-8"),
        (b'[{"id": 1,\n "text": }]', "x:2 is not valid JSON"),
        (b'[{"id": "\xff"}]', "x:1 is not UTF-8"),
        (b"[" * 100_000, "none of the known formats"),
        (b'{"a":' * 5000, "nested too deeply"),
        (b"hello\nworld\n", "none of the known formats: name the format \\(slack"),
        (b'text;time\n"open;1\n', "x:2 is not valid CSV"),
        (b"text," + b"x" * 200_000, "x:1 is not valid CSV"),
        (packed({"a.json": "[]"}, compress_type=zipfile.ZIP_BZIP2), "pack the exported files"),
        (b'{"chats": {"list": 5}}', "is no export of Telegram"),
    ],
)
def test_what_cannot_be_read_is_refused_with_place_and_remedy(content: bytes, reason: str) -> None:
    with pytest.raises(ImportRefused, match=reason):
        read(content, "x")


def test_values_of_other_types_are_reported() -> None:
    assert [type(found) for found in read(b'[{"messages": [1]}]', "x.json")] == [Problem]
    with pytest.raises(ImportRefused, match=r"has no users\.json"):
        read(packed({"my-users.json": "[]"}), "x.zip", format="slack")


def test_a_damaged_or_encrypted_archive_is_refused() -> None:
    content = bytearray(packed({"_chat.txt": "13.1.26, 10:00 - M: Hi\n" * 50}))
    content[60] ^= 0xFF
    with pytest.raises(ImportRefused, match="damaged archive"):
        read(bytes(content), "x.zip")
    encrypted = bytearray(packed({"_chat.txt": "x"}))
    encrypted[6] |= 1
    encrypted[encrypted.rindex(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(ImportRefused, match="is encrypted"):
        read(bytes(encrypted), "x.zip")


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("[]")
    folder = tmp_path / "slack"
    (folder / "general").mkdir(parents=True)
    (folder / "users.json").write_text("[]")
    (folder / "general" / "2026-01-01.json").symlink_to(tmp_path / "secret.json")
    (folder / "outside").symlink_to(tmp_path)
    with Source.open(folder, "slack") as source:
        assert [*source.texts] == ["users.json"]


def test_a_tree_without_an_end_is_read_once() -> None:
    node = {"parent": "b", "message": {"author": {"role": "user"}, "id": "1",
            "content": {"content_type": "text", "parts": ["Hi"]}}}  # fmt: skip
    loop = {"id": "c", "current_node": "a", "mapping": {"a": node, "b": node | {"parent": "a"}}}
    (row, again) = read(json.dumps([loop]).encode(), "conversations.json")
    assert all(isinstance(found, Row) for found in (row, again))
    (problem,) = read(json.dumps([{"id": "c", "mapping": {}}]).encode(), "conversations.json")
    assert isinstance(problem, Problem)
    assert "no `current_node`" in problem.reason


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"format": "icq"}, "'icq' is none of slack"),
        ({"time_zone": "Mars/Olympus"}, "'Mars/Olympus' is unknown: give one such as"),
        ({"date_order": "ydm"}, "'ydm' is none of dmy"),
        ({"columns": {"words": "x"}}, "'words' is none of text"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ImportRefused, match=reason):
        Options(**options)
