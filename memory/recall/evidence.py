"""Reads the evidence for each message of a scope: one request to Postgres, read by numpy.

Four statements read the turns with the question's words, the facts with evidence and the exclusions
from recall, the distances of the pieces, and the texts. They are sent together in one round trip,
and `scoring` processes each result while Postgres runs the next statement.

A scope of up to WHOLE_SCOPE messages is read as a whole. Each statement counts the messages first,
up to the limit, and reads nothing if there are more. A larger scope is remembered as large, and its
candidates are read: the best by words among those with the question's rarest words, the nearest by
vector, and the turns around both. The words of the turns before come with them.

Columns come as arrays in Postgres' binary format, and the stored features of a message as one
column; passing hundreds of rows between query steps, and to Python, took longer than everything
else. Texts are one row each, and only those of found messages are converted. If there are too many,
or the turns around are requested, they are read later by another statement.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from struct import pack, unpack_from
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from django.db.backends.utils import CursorWrapper
from numpy.typing import NDArray

from memory.recall.queries import Strategy, evidence_sql, texts_sql
from memory.text.chunking import sentence_spans

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Turns:
    """The messages of a scope, and the question's words in them.

    Arrays of a group have equal length.
    """

    large: bool
    """Candidates alone, and the turns around them."""
    messages: int
    """Of the scope; an estimate for a scope that is walked."""

    number: NDArray[np.int64]
    """Of each message, those of a session together, turn after turn: Message.number."""
    ids: NDArray[np.uint64]
    """Both halves of each."""
    session: NDArray[np.int64]
    created_at: NDArray[np.int64]
    """Microseconds since 2000."""
    subject: NDArray[np.int64]
    """Hash of the first word of the speaker's name."""
    words: NDArray[np.int32]
    has_time: Flags
    asks: Flags
    by_user: Flags
    lexemes: NDArray[np.int32]
    """The number of lexemes."""
    near: Flags
    """Of a large scope: a candidate, and not only a turn beside one."""
    context_only: Flags
    """Of a large scope: there for its words alone, which count for the turns after it."""

    posting_term: NDArray[np.int64]
    """Of each posting."""
    posting_number: NDArray[np.int64]
    posting_weight: NDArray[np.float32]

    counted_term: NDArray[np.int64]
    """Of each word of a large scope. Of a whole one the postings tell."""
    counted: NDArray[np.float64]
    """How many messages hold it."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """The cosine similarities of pieces of messages to the question."""

    ids: NDArray[np.uint64]
    """Of each piece: its message's."""
    cosine: NDArray[np.float64]


class Quote(NamedTuple):
    """A quote from a message as the evidence of a fact."""

    message_id: UUID
    start: int
    end: int
    text: str
    said_at: datetime


class KnownFact(NamedTuple):
    """A fact with evidence in messages of the scope."""

    memory_id: UUID
    content: str
    cosine: float
    quotes: list[Quote]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Words of a message that recall leaves out, or the whole message."""

    message_id: UUID
    start: int | None
    """None: the whole message."""
    end: int | None
    memory_id: UUID | None
    """The corrected fact; None: the message itself was excluded."""
    reason: str


@dataclass(frozen=True, slots=True)
class Known:
    """The facts with evidence in messages of a scope, and the exclusions from recall."""

    cited: Pieces
    """Of each quote: its message's id, and the cosine of its fact."""
    facts: list[KnownFact]
    """The nearest, nearest first."""
    exclusions: dict[UUID, list[Exclusion]]
    """By message."""
    remaining: dict[UUID, float]
    """Of messages with excluded words, the best cosine of their other pieces; -inf without any."""

    def is_excluded(self, message_id: UUID) -> bool:
        """Return whether the whole message is excluded."""
        return any(each.start is None for each in self.exclusions.get(message_id, ()))

    @property
    def excluded(self) -> list[UUID]:
        """Return the messages that are excluded as a whole."""
        return [message_id for message_id in self.exclusions if self.is_excluded(message_id)]

    def without_excluded(self, message_id: UUID, content: str) -> str:
        """Return the content of a message with "…" in place of excluded words."""
        words = [
            (each.start, each.end)
            for each in self.exclusions.get(message_id, ())
            if each.start is not None and each.end is not None
        ]
        end = len(content)
        kept: list[str] = []
        for start, stop in sorted(words, reverse=True):
            if stop < end:
                kept.append(content[stop:end])
                end = stop
            end = min(end, start)
        kept.append(content[:end])
        return "…".join(reversed(kept)) if words else content


NOTHING_KNOWN = Known(Pieces(np.empty((0, 2), np.uint64), np.empty(0)), [], {}, {})


class Text(NamedTuple):
    """The text of a message, with the turns around it as JSON if requested."""

    number: int
    external_id: str | None
    thread_id: str
    role: str
    name: str
    content: str
    metadata: dict[str, Any] | None
    """None where they are too large to come along."""
    neighbours: list[list[Any]] | None = None


def _items(*kinds: str) -> tuple[np.dtype[Any], ...]:
    """Return the dtypes of array values of these kinds: each after its length."""
    return tuple(np.dtype([("length", ">i4"), ("value", kind)]) for kind in kinds)


# The number of columns of the first statement; the settings for the others follow.
_COLUMNS = 6
# IndexedMessage.packed_row and .lexemes
_PACKED_ROW = np.dtype(
    [
        ("number", ">i8"), ("ids", ">u8", 2), ("session", ">i8"), ("created_at", ">i8"),
        ("subject", ">i8"), ("words", ">i4"), ("has_time", "?"), ("asks", "?"), ("by_user", "?"),
        ("lexemes", ">i4"),
    ]
)  # fmt: skip
_POSTINGS = _items(">i8", ">i8", ">f4")
_NEAR_AND_COUNTED = _items(">i2", ">i8", ">f8")
_PIECES = _items("2>u8", ">f8")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The results of a recall's statements, to be read in this order: turns, known, pieces,
    texts.
    """

    fits: bool
    """False: the scope is too large for this way, and the other fields have no meaning."""
    turns: Turns
    _cursor: CursorWrapper
    _values: Mapping[str, Any]
    _has_texts: bool
    """The texts come along."""

    def known(self) -> Known:
        """Read the facts and exclusions of the messages."""
        self._cursor.nextset()
        cited, facts, exclusions = self._cursor.fetchone()
        by_message: dict[UUID, list[Exclusion]] = {}
        remaining: dict[UUID, float] = {}
        for message_id, start, end, memory_id, reason, content, pieces in exclusions or ():
            identity = UUID(message_id)
            fact = None if memory_id is None else UUID(memory_id)
            excluded = Exclusion(identity, start, end, fact, reason)
            by_message.setdefault(identity, []).append(excluded)
            if content is not None:
                words = [each for each in by_message[identity] if each.start is not None]
                remaining[identity] = _best_remaining(content, words, pieces or ())
        return Known(
            Pieces(*_unpacked(cited, _PIECES)),
            [
                KnownFact(
                    UUID(memory_id),
                    content,
                    cosine,
                    [
                        Quote(UUID(said), start, end, quote, datetime.fromisoformat(said_at))
                        for said, start, end, quote, said_at in quotes
                    ],
                )
                for memory_id, content, cosine, quotes in facts or ()
            ],
            by_message,
            remaining,
        )

    def pieces(self) -> Pieces:
        """Read the cosine similarities of the pieces."""
        self._cursor.nextset()
        (sent,) = self._cursor.fetchone()
        return Pieces(*_unpacked(sent, _PIECES))

    def texts(self, found: Mapping[int, UUID]) -> dict[int, Text]:
        """Read the texts of messages, from the same request or by another statement.

        Args:
            found: ids of the messages by number.
        """
        if not found:
            return {}
        if self._has_texts:
            self._cursor.nextset()
            rows = self._cursor.fetch_where(0, {pack(">q", number) for number in found})
        else:
            until, neighbours = self._values["at"] is not None, self._values["neighbours"] > 0
            self._cursor.execute(
                texts_sql(until=until, neighbours=neighbours),
                {**self._values, "ids": list(found.values())},
            )
            rows = self._cursor.fetchall()
        return {row[0]: Text(*row) for row in rows}


def _best_remaining(
    content: str, excluded: Iterable[Exclusion], pieces: Iterable[tuple[str, float]]
) -> float:
    """Return the best cosine of the pieces without sentences with excluded words."""
    wrong = [
        sentence
        for sentence, start, end in sentence_spans(content)
        if any(start < (each.end or 0) and (each.start or 0) < end for each in excluded)
    ]
    return max(
        (
            cosine
            for piece, cosine in pieces
            # A long sentence is several pieces, each after the speaker's name.
            if not any(
                sentence in piece or piece.partition(": ")[2] in sentence for sentence in wrong
            )
        ),
        default=-math.inf,
    )


def gather(cursor: CursorWrapper, values: Mapping[str, Any], strategy: Strategy) -> Evidence:
    """Send the statements for a scope's messages, and read the turns.

    Args:
        strategy: any except WHOLE reads only candidates and the turns around them.
    """
    along = not values["neighbours"]
    until, among = values["at"] is not None, values["among"] is not None
    cursor.execute(evidence_sql(strategy, until=until, among=among, texts=along), values)
    messages, fits, few_words, packed_rows, postings, near_and_counted = cursor.fetchone()[
        :_COLUMNS
    ]
    rows = np.frombuffer(packed_rows, _PACKED_ROW)
    term, number, weight = _unpacked(postings, _POSTINGS)
    near, counted_term, counted = np.ones(len(rows)), np.empty(0, np.int64), np.empty(0)
    large = strategy is not Strategy.WHOLE
    if large:
        near, counted_term, counted = _unpacked(near_and_counted, _NEAR_AND_COUNTED)
    turns = Turns(
        large=large,
        messages=messages,
        **{name: _native(rows[name]) for name in _PACKED_ROW.names or ()},
        near=near > 1,
        context_only=near < 1,
        posting_term=term,
        posting_number=number,
        posting_weight=weight,
        counted_term=counted_term,
        counted=counted,
    )
    return Evidence(fits, turns, cursor, values, along and bool(few_words))


def _unpacked(sent: bytes, items: Iterable[np.dtype[Any]]) -> Iterator[NDArray[Any]]:
    """Return arrays from Postgres' binary format: each has a header, then each value after its
    length.
    """
    start = 0
    for item in items:
        dimensions, _, _, *sizes = unpack_from(">iIIii" if sent[start + 3] else ">iII", sent, start)
        count, start = (sizes[0], start + 20) if dimensions else (0, start + 12)
        yield _native(np.frombuffer(sent, item, count, start)["value"])
        start += count * item.itemsize


def _native(values: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous copy in this machine's byte order."""
    return values.astype(values.dtype.newbyteorder("="))
