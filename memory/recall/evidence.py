"""Reads the evidence for each message of a scope with three statements, read by numpy.

They read the turns with the question's words, the facts with evidence and the exclusions from
recall, and the distances of the pieces. `scoring` ranks the messages; then another statement reads
the texts of the best.

A small scope is read as a whole. Each statement counts the messages first, up to the limit, and
reads nothing if there are more. Of a larger scope only candidates are read: the best by words among
those with the question's rarest words, the nearest by vector, the turns around both, and the words
of the turns before.

Columns come as arrays in Postgres' binary format, and the stored features of a message as one
column; passing hundreds of rows between query steps, and to Python, took longer than everything
else.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from struct import unpack_from
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from memory.recall.queries import Strategy, evidence_sql, texts_sql
from memory.text.sentences import sentence_spans
from tenants.context import fetch_all, fetch_row, fetch_value

Flags = NDArray[np.bool_]
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""Postgres'."""
_DAY = 24 * 60 * 60 * 10**6


@dataclass(frozen=True, slots=True)
class Turns:
    """The messages of a scope, and the question's words in them.

    Arrays of a group have equal length.
    """

    is_large: bool
    """Whether these are only candidates and the turns around them."""
    messages: int
    """Number of messages of the scope; an estimate with Strategy.HNSW."""

    number: NDArray[np.int64]
    """Message.number of each message, sorted by session and time."""
    ids: NDArray[np.uint64]
    """Both halves of each message's id."""
    session: NDArray[np.int64]
    created_at: NDArray[np.int64]
    """Microseconds since 2000."""
    day: NDArray[np.int64]
    """Days since 2000, in the time zone of the user."""
    subject: NDArray[np.int64]
    """Hash of the first word of the speaker's name."""
    words: NDArray[np.int32]
    has_time: Flags
    asks: Flags
    by_user: Flags
    lexemes: NDArray[np.int32]
    """The number of lexemes."""
    is_candidate: Flags
    """In a large scope: whether it is a candidate, and not only a turn beside one."""
    is_context_only: Flags
    """In a large scope: whether only its words are used, which count for the turns after it."""

    posting_term: NDArray[np.int64]
    """The word of each posting."""
    posting_number: NDArray[np.int64]
    """The message of each posting."""
    posting_weight: NDArray[np.float32]

    frequency_term: NDArray[np.int64]
    """The words with a document frequency; empty if the whole scope is read."""
    document_frequency: NDArray[np.float64]
    """The number of messages with each of these words."""


@dataclass(frozen=True, slots=True)
class PieceCosines:
    """The cosine similarities of pieces of messages to the question."""

    ids: NDArray[np.uint64]
    """Both halves of the id of each piece's message."""
    cosine: NDArray[np.float64]


class Quote(NamedTuple):
    """A quote from a message as the evidence of a fact."""

    message_id: UUID
    start: int
    end: int
    text: str
    said_at: datetime


class CitedFact(NamedTuple):
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
    """First character of the words; None: the whole message."""
    end: int | None
    """Position after the last character."""
    memory_id: UUID | None
    """The corrected fact; None: the message itself was excluded."""
    reason: str


@dataclass(frozen=True, slots=True)
class FactsAndExclusions:
    """The facts with evidence in messages of a scope, and the exclusions from recall."""

    fact_cosines: PieceCosines
    """For each quote, its message's id and the cosine of its fact."""
    facts: list[CitedFact]
    """The facts nearest to the question, nearest first."""
    exclusions: dict[UUID, list[Exclusion]]
    """Exclusions by message id."""
    remaining_cosines: dict[UUID, float]
    """For messages with excluded words, the best cosine of their other pieces; -inf without any."""

    def is_excluded(self, message_id: UUID) -> bool:
        """Return whether the whole message is excluded."""
        exclusions = self.exclusions.get(message_id, ())
        return any(exclusion.start is None for exclusion in exclusions)

    @property
    def excluded(self) -> list[UUID]:
        """Return the messages that are excluded as a whole."""
        return [message_id for message_id in self.exclusions if self.is_excluded(message_id)]

    def without_excluded(self, message_id: UUID, content: str) -> str:
        """Return the content of a message with "…" in place of excluded words."""
        spans = [
            (exclusion.start, exclusion.end)
            for exclusion in self.exclusions.get(message_id, ())
            if exclusion.start is not None and exclusion.end is not None
        ]
        end = len(content)
        parts: list[str] = []
        for start, stop in sorted(spans, reverse=True):
            if stop < end:
                parts.append(content[stop:end])
                end = stop
            end = min(end, start)
        parts.append(content[:end])
        return "…".join(reversed(parts)) if spans else content


NO_FACTS_OR_EXCLUSIONS = FactsAndExclusions(
    PieceCosines(np.empty((0, 2), np.uint64), np.empty(0)), [], {}, {}
)


class Text(NamedTuple):
    """The text of a message, with the turns around it as JSON if requested."""

    number: int
    external_id: str | None
    thread_id: str
    role: str
    name: str
    content: str
    metadata: dict[str, Any] | None
    """None if they are too large to be read with the text."""
    neighbours: list[list[Any]] | None = None


def _array_dtypes(*kinds: str) -> tuple[np.dtype[Any], ...]:
    """Return the dtypes of array items of these kinds: each item follows its length."""
    return tuple(np.dtype([("length", ">i4"), ("value", kind)]) for kind in kinds)


# IndexedMessage.packed_row and .lexemes
_PACKED_ROW = np.dtype(
    [
        ("number", ">i8"), ("ids", ">u8", 2), ("session", ">i8"), ("created_at", ">i8"),
        ("subject", ">i8"), ("words", ">i4"), ("has_time", "?"), ("asks", "?"), ("by_user", "?"),
        ("lexemes", ">i4"),
    ]
)  # fmt: skip
_POSTINGS = _array_dtypes(">i8", ">i8", ">f4")
_NEAR_AND_COUNTED = _array_dtypes(">i2", ">i8", ">f8")
_PIECES = _array_dtypes("2>u8", ">f8")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The turns of a scope, and what else can be read about them."""

    fits: bool
    """False: the scope is too large for the strategy, and the other fields have no meaning."""
    turns: Turns
    _values: Mapping[str, Any]
    _facts_sql: str
    _pieces_sql: str

    def read_facts_and_exclusions(self) -> FactsAndExclusions:
        """Read the facts and exclusions of the messages."""
        cited, facts, exclusions = fetch_row(self._facts_sql, self._values)
        by_message: dict[UUID, list[Exclusion]] = {}
        remaining_cosines: dict[UUID, float] = {}
        for message_id, start, end, memory_id, reason, content, pieces in exclusions or ():
            message_uuid = UUID(message_id)
            fact_uuid = None if memory_id is None else UUID(memory_id)
            by_message.setdefault(message_uuid, []).append(
                Exclusion(message_uuid, start, end, fact_uuid, reason)
            )
            if content is not None:
                of_words = [
                    exclusion
                    for exclusion in by_message[message_uuid]
                    if exclusion.start is not None
                ]
                remaining_cosines[message_uuid] = _best_cosine_without(
                    of_words, content, pieces or ()
                )
        return FactsAndExclusions(
            PieceCosines(*_unpack_arrays(cited, _PIECES)),
            [
                CitedFact(
                    UUID(memory_id),
                    content,
                    cosine,
                    [
                        Quote(UUID(message_id), start, end, quote, datetime.fromisoformat(said_at))
                        for message_id, start, end, quote, said_at in quotes
                    ],
                )
                for memory_id, content, cosine, quotes in facts or ()
            ],
            by_message,
            remaining_cosines,
        )

    def read_pieces(self) -> PieceCosines:
        """Read the cosine similarities of the pieces."""
        arrays = fetch_value(self._pieces_sql, self._values)
        return PieceCosines(*_unpack_arrays(arrays, _PIECES))

    def read_texts(self, message_ids: Mapping[int, UUID]) -> dict[int, Text]:
        """Read the texts of messages.

        Args:
            message_ids: ids of the messages by number.
        """
        if not message_ids:
            return {}
        as_of, neighbours = self._values["at"] is not None, self._values["neighbours"] > 0
        rows = fetch_all(
            texts_sql(as_of=as_of, neighbours=neighbours),
            {**self._values, "ids": list(message_ids.values())},
        )
        return {row[0]: Text(*row) for row in rows}


def _best_cosine_without(
    exclusions: Iterable[Exclusion], content: str, pieces: Iterable[tuple[str, float]]
) -> float:
    """Return the best cosine of a message's pieces without sentences with excluded words."""
    excluded_sentences = [
        sentence
        for sentence, start, end in sentence_spans(content)
        if any(
            start < (exclusion.end or 0) and (exclusion.start or 0) < end
            for exclusion in exclusions
        )
    ]
    return max(
        (
            cosine
            for piece, cosine in pieces
            # A long sentence is several pieces, each after the speaker's name.
            if not any(
                sentence in piece or piece.partition(": ")[2] in sentence
                for sentence in excluded_sentences
            )
        ),
        default=-math.inf,
    )


def read_evidence(values: Mapping[str, Any], strategy: Strategy) -> Evidence:
    """Read the turns of a scope.

    Args:
        strategy: any except WHOLE reads only candidates and the turns around them.
    """
    turns_sql, facts_sql, pieces_sql = evidence_sql(
        strategy, as_of=values["at"] is not None, filtered=values["among"] is not None
    )
    messages, fits, packed_rows, postings, near_and_counted, ids = fetch_row(turns_sql, values)
    rows = np.frombuffer(packed_rows, _PACKED_ROW)
    term, number, weight = _unpack_arrays(postings, _POSTINGS)
    near, counted_term, counted = np.ones(len(rows)), np.empty(0, np.int64), np.empty(0)
    large = strategy is not Strategy.WHOLE
    if large:
        near, counted_term, counted = _unpack_arrays(near_and_counted, _NEAR_AND_COUNTED)
    columns = {name: _to_native(rows[name]) for name in _PACKED_ROW.names or ()}
    turns = Turns(
        is_large=large,
        messages=messages,
        **columns,
        day=_days(columns["created_at"], values["zone"]),
        is_candidate=near > 1,
        is_context_only=near < 1,
        posting_term=term,
        posting_number=number,
        posting_weight=weight,
        frequency_term=counted_term,
        document_frequency=counted,
    )
    return Evidence(fits, turns, {**values, "turns": ids}, facts_sql, pieces_sql)


def _days(created_at: NDArray[np.int64], zone: ZoneInfo) -> NDArray[np.int64]:
    """Return the days of times. Of a day when clocks change, the offset at noon counts."""
    days, day_of = np.unique(created_at // _DAY, return_inverse=True)
    offsets = np.array([_utc_offset(day, zone) for day in days.tolist()], np.int64)
    return (created_at + offsets[day_of]) // _DAY


@lru_cache(maxsize=4096)  # eleven years of days
def _utc_offset(day: int, zone: ZoneInfo) -> int:
    """Return the offset of a time zone at noon of a day, in microseconds."""
    offset = (EPOCH + timedelta(days=day, hours=12)).astimezone(zone).utcoffset()
    return (offset or timedelta()) // timedelta(microseconds=1)


def _unpack_arrays(arrays: bytes, items: Iterable[np.dtype[Any]]) -> Iterator[NDArray[Any]]:
    """Yield arrays from Postgres' binary format: each has a header, then each value after its
    length.
    """
    start = 0
    for item in items:
        header = ">iIIii" if arrays[start + 3] else ">iII"
        dimensions, _, _, *sizes = unpack_from(header, arrays, start)
        count, start = (sizes[0], start + 20) if dimensions else (0, start + 12)
        yield _to_native(np.frombuffer(arrays, item, count, start)["value"])
        start += count * item.itemsize


def _to_native(values: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous copy in this machine's byte order."""
    return values.astype(values.dtype.newbyteorder("="))
