"""Files of other systems: a file, a folder or a zip archive is checked, and read as text or JSON.

Nothing is unpacked to a disk. An error names the file, the line and the remedy.
"""

import codecs
import json
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final, Self

from konstruct.orchestrator.exceptions import ImportRefused
from konstruct.strict_json import NotStrictJSON, read_json

# Of a JSON document, which is read at once, and of all texts of an archive.
MAX_BYTES: Final = 200_000_000
# Of all texts of an uploaded archive: in memory, small values take 25 times their bytes.
MAX_UPLOADED_BYTES: Final = 24_000_000
MAX_LINE_BYTES: Final = 10_000_000
# The time is checked after so many lines.
CHECKED_LINES: Final = 10_000
# Other files of an archive, such as pictures, are not read.
TEXTS: Final = (".json", ".jsonl", ".txt", ".csv")
# A page of Telegram's HTML.
PAGE: Final = re.compile(r"messages\d*\.html")
# Marks of direction, which WhatsApp puts before lines and names.
MARKS: Final = "\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069\ufeff"
_JSON: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{|\[\s*[{\]])")
_PLACE: Final = re.compile(r" line (\d+) ")


@dataclass(frozen=True, slots=True)
class Row:
    """A message or a fact of another system, whose author is not assigned to anyone yet."""

    place: str
    """Where it is in the source: a line, or a file with a number."""
    text: str
    thread: str = ""
    """Id of the conversation; "": the source has one conversation."""
    external_id: str | None = None
    author: str = ""
    """Name of the author; "": the source does not name the user."""
    author_id: str = ""
    user_id: str | None = None
    """The user, if the source has ids of users."""
    role: str = ""
    """user or assistant; "": unsure."""
    time: datetime | None = None
    """Without a zone: of the time zone of the import."""
    media: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    is_fact: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line for `import_history`, or the fields of a fact."""

    place: str
    fields: Any
    is_fact: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of the source that is left out, and why."""

    place: str
    reason: str


Found = Iterator[Row | Line | Problem]


class Source:
    """The texts of a file, a folder or an archive, by their names. See `open`."""

    def __init__(
        self,
        name: str,
        texts: Mapping[str, Callable[[], BinaryIO]],
        check_time: Callable[[], object] = lambda: None,
    ) -> None:
        self.name = name
        self.texts = texts
        self._check_time = check_time
        self.title = PurePosixPath(name).stem.strip(MARKS).strip()
        """Names the conversation of a source that has one."""

    @classmethod
    @contextmanager
    def open(
        cls, content: Path | bytes, name: str, check_time: Callable[[], object] = lambda: None
    ) -> Iterator[Self]:
        """Open a source.

        Args:
            content: a path of a file or folder, or the content of a file.
            name: the name of the file.
            check_time: called from time to time while lines are read. It may raise ImportRefused.

        Raises:
            ImportRefused: it cannot be read, is empty, or is an archive that is damaged or hostile.
        """
        try:
            if isinstance(content, Path) and content.is_dir():
                paths = sorted(
                    path
                    for path in content.rglob("*")
                    if (path.suffix == ".json" or PAGE.fullmatch(path.name))
                    and not path.is_symlink()
                    and path.resolve().is_relative_to(content.resolve())
                )
                texts = {
                    path.relative_to(content).as_posix(): partial(path.open, "rb") for path in paths
                }
                yield cls(name, _not_empty(name, texts))
                return
            opener: Callable[[], Any] = (
                partial(content.open, "rb")
                if isinstance(content, Path)
                else partial(BytesIO, content)
            )
            limit = MAX_BYTES if isinstance(content, Path) else MAX_UPLOADED_BYTES
            with opener() as file:
                start = file.read(4)
                file.seek(0)
                if not start:
                    raise ImportRefused(f"{name} is empty: it has no lines. Export it again.")
                if start[:2] != b"PK":
                    yield cls(name, {name: opener}, check_time)
                    return
                with zipfile.ZipFile(file) as archive:
                    entries = {
                        entry.filename: partial(archive.open, entry)
                        for entry in _texts_of(archive, limit)
                    }
                    yield cls(name, _not_empty(name, entries), check_time)
        except OSError as error:
            if isinstance(content, bytes):
                raise
            raise ImportRefused(f"{name} cannot be read: {error.strerror or error}.") from error
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError) as error:
            raise ImportRefused(
                f"{name} is a damaged archive ({error}): export or pack it again."
            ) from error

    def lines(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield the lines of a text with their numbers, without their ends.

        Raises:
            ImportRefused: a line is too long, or is not UTF-8.
        """
        with self.texts[text]() as file:
            for number, raw in enumerate(iter(partial(file.readline, MAX_LINE_BYTES), b""), 1):
                if number % CHECKED_LINES == 0:
                    self._check_time()
                if len(raw) == MAX_LINE_BYTES:
                    raise ImportRefused(
                        f"{text}:{number} has more than {MAX_LINE_BYTES:,} bytes: divide the line."
                    )
                yield number, _decoded(raw, text, number).rstrip("\r\n")

    def items(self, text: str) -> Iterator[tuple[str, Any]]:
        """Yield the objects of a file of JSON lines, or of a JSON document, with their places.

        A line that is not JSON is yielded as None.

        Raises:
            ImportRefused: the document is too long, or is not JSON.
        """
        if self._has_json_lines(text):
            for number, line in self.lines(text):
                if line.strip():
                    try:
                        yield str(number), read_json(line)
                    except NotStrictJSON:
                        yield str(number), None
            return
        document = self.document(text)
        items = document if isinstance(document, list) else [document]
        for number, item in enumerate(items, 1):
            yield f"item {number}", item

    def document(self, text: str) -> Any:
        """Return the JSON of a text. Raises ImportRefused: it is too long, or is not JSON."""
        with self.texts[text]() as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ImportRefused(
                f"{text} has more than {MAX_BYTES:,} bytes: divide it into several files."
            )
        try:
            return read_json(_decoded(raw, text, 1))
        except NotStrictJSON as error:
            found = _PLACE.search(str(error))
            place = f"{text}:{found[1]}" if found else text
            raise ImportRefused(f"{place} is not valid JSON ({error}): export it again.") from error

    def is_json(self, text: str) -> bool:
        """Return whether a text begins as a JSON object, or a list of objects."""
        with self.texts[text]() as file:
            return _JSON.match(file.read(1000)) is not None

    def objects(self, text: str) -> list[dict[str, Any]]:
        """Return the JSON list of objects of a text, as `document` does."""
        document = self.document(text)
        if not isinstance(document, list) or not all(isinstance(item, dict) for item in document):
            raise ImportRefused(f"{text} is no list of objects: export it again.")
        return document

    def _has_json_lines(self, text: str) -> bool:
        with self.texts[text]() as file:
            first = file.readline(MAX_LINE_BYTES).removeprefix(codecs.BOM_UTF8)
        try:
            return isinstance(json.loads(first), dict)
        except (ValueError, RecursionError):
            return not first.lstrip().startswith((b"{", b"["))


def utc_time(value: Any) -> datetime | None:
    """Return the time of seconds since 1970, or of ISO 8601, which may have no zone; else None."""
    try:
        if isinstance(value, str) and not re.fullmatch(r"\d+(\.\d+)?", value):
            return datetime.fromisoformat(value)
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            return datetime.fromtimestamp(float(value), UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def text_of(mapping: Any, *names: str) -> str:
    """Return the first value of these names that is a text and not empty, else ""."""
    values = (mapping.get(name) for name in names) if isinstance(mapping, Mapping) else ()
    return next((value for value in values if isinstance(value, str) and value), "")


def list_of(mapping: Any, *names: str) -> list[Any]:
    """Return the first value of these names that is a list, else []."""
    values = (mapping.get(name) for name in names) if isinstance(mapping, Mapping) else ()
    return next((value for value in values if isinstance(value, list)), [])


def dict_of(mapping: Any, name: str) -> dict[str, Any]:
    """Return the value of this name if it is an object, else {}."""
    value = mapping.get(name) if isinstance(mapping, Mapping) else None
    return value if isinstance(value, dict) else {}


def _texts_of(archive: zipfile.ZipFile, limit: int) -> Iterator[zipfile.ZipInfo]:
    """Yield the texts of an archive; refuse one that is hostile or too large."""
    size, remedy = 0, "pack the exported files again"
    for entry in archive.infolist():
        path = PurePosixPath(entry.filename)
        if path.is_absolute() or ".." in path.parts or re.match(r"\w:|.*\\", entry.filename):
            raise ImportRefused(f"{entry.filename!r} leads out of the archive: {remedy}.")
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise ImportRefused(f"{entry.filename!r} is a link: {remedy}.")
        is_text = path.suffix.lower() in TEXTS or PAGE.fullmatch(path.name)
        if not is_text or path.name.startswith("."):
            continue
        # Others are decompressed as a whole, however large that is.
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ImportRefused(f"{entry.filename!r} is not compressed by deflate: {remedy}.")
        if entry.flag_bits & 1:
            raise ImportRefused(f"{entry.filename!r} is encrypted: {remedy} without a password.")
        size += entry.file_size  # no more is read of it
        if size > limit:
            raise ImportRefused(
                f"The archive has texts of more than {limit:,} bytes: divide it, and import its"
                " parts one after the other."
            )
        yield entry


def _not_empty(name: str, texts: Mapping[str, Any]) -> Mapping[str, Any]:
    if not texts:
        raise ImportRefused(f"{name} has no file that ends with {', '.join(TEXTS)}: export again.")
    return texts


def _decoded(raw: bytes, text: str, number: int) -> str:
    if number == 1:
        raw = raw.removeprefix(codecs.BOM_UTF8)
    if number == 1 and raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ImportRefused(f"{text}:1 is UTF-16: save the file as UTF-8.")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = number + raw[: error.start].count(b"\n")
        raise ImportRefused(
            f"{text}:{line} is not UTF-8 (byte 0x{raw[error.start]:02x}): save the file as UTF-8."
        ) from error
