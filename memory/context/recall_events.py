"""Writes recall events: the recall and the prompt of a reply. `recall_traces` reads them.

An event stores no text of a person. It has ids, scores, and the segments of each text
(`memory.context.segments`), packed into one column; a reader joins them with the present rows, so
that an erased message is erased from all prompts. Only a program that replaces the functions that
build a prompt can add other texts: these are in a column of their own, which an erasure of any
source of the prompt empties.
"""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, tzinfo
from itertools import chain
from typing import Any, Final, get_args
from uuid import UUID

import numpy as np
import ormsgpack

from memory.context import chat
from memory.context.prompt import Prompt
from memory.context.segments import SourceText, Splitter, split_own
from memory.context.tokens import DESCRIPTION
from memory.models import Message, PromptSource, RecallEvent
from memory.recall.service import Reason
from tenants.context import fetch_all
from tenants.naming import as_uuid

VERSION: Final = 3
# The id of an erased source.
NO_ID: Final = UUID(int=0)
# Instead of a segment: the memories of the event, one a line.
MEMORIES: Final = None
# Stored events have the positions of these values, and of the names of CHANNELS: append new ones.
ROLES: Final = ("system", "user", "assistant", "tool")
REASONS: Final = get_args(Reason)
SCORES: Final = ("score", "probability", "gate_value")
RERANKER: Final = ("model", "min_score", "problem", "milliseconds")
CHANNELS: Final = (
    *("cosine", "lexical", "coverage", "subject", "words", "time", "unknown", "gap", "mean_cosine"),
    *("unknown_name", "anonymous", "scarcity", "session", "previous", "following", "fact"),
)
# Scores and channels are numbers below about 10, of which two or three digits are shown.
_MAX_SCORE: Final = float(np.finfo(np.float16).max)
# The parts of a usual event, which compressed ones refer to. Stored events need it: change nothing.
_ROWS: Final = range(48)
_USUAL: Final = b"".join(
    ormsgpack.packb(part)
    for part in (
        *(
            f"{chat.CONTEXT_OPENING}\n{chat.CONTEXT_NOTICE}\n",
            chat.TRANSPARENCY_CLAUSE,
            chat.DATE_OPENING,
            chat.DATE_NOTICE,
        ),
        *([[row, reason] for row in _ROWS] for reason in (7, 5, 6, 4)),
        [["- ", -3 * row - 3, " ", -3 * row - 1, ": ", row] for row in _ROWS],
        [[row, None, [], []] for row in _ROWS],
        [[2 - row % 2, [row]] for row in _ROWS],
        [[1 + row % 2, [row]] for row in _ROWS],
        *("Wednesday, 2026-10-10 10:00 (UTC).", "fast", 8000, "UTC", [*range(16)]),
        [
            [name, 0, 1200, 0, False, [], [0, []]]
            for name in ("system", "memory", "session", "task")
        ],
    )
)
_MAX_UNPACKED_BYTES: Final = 2**24
# Deflate without a header and a checksum.
_WBITS: Final = -15


# The messages, and the facts with all their versions.
_COLUMNS: Final = (
    *("id", "user_id", "external_id", "thread_id", "role", "name", "content"),
    "created_at",
)
_SOURCES: Final = f"""
    SELECT {", ".join(_COLUMNS)}, NULL::uuid AS version_of, true AS is_message
    FROM memory_message WHERE id = ANY(%(ids)s::uuid[])
    UNION ALL
    SELECT memory_id, user_id, NULL, '', '', '', content, created_at, version_of, false
    FROM memory_memoryentry
    WHERE memory_id = ANY(%(ids)s::uuid[]) OR version_of = ANY(%(ids)s::uuid[])
"""  # noqa: S608  (our constants)


class SourceRows:
    """The rows of sources, as they are now. One statement reads them."""

    def __init__(self, ids: Iterable[UUID]) -> None:
        wanted = {pk for pk in ids if pk != NO_ID}
        self.messages: dict[UUID, dict[str, Any]] = {}
        self.facts: dict[UUID, list[tuple[str, str | None]]] = {}
        for *values, version_of, is_message in fetch_all(_SOURCES, {"ids": list(wanted)}):
            row = dict(zip(_COLUMNS, values, strict=True))
            if is_message:
                self.messages[row["id"]] = row
            for fact_id in () if is_message else wanted & {row["id"], version_of}:
                self.facts.setdefault(fact_id, []).append((row["content"], row["user_id"]))

    def user_ids(self, pk: UUID) -> set[str | None]:
        """Return the users that a source belongs to; empty if it does not exist."""
        if message := self.messages.get(pk):
            return {message["user_id"]}
        return {user_id for _, user_id in self.facts.get(pk, ())}

    def text(self, pk: UUID, digest: int | None = None, zone: tzinfo = UTC) -> SourceText | None:
        """Return the texts of a source: of a fact, those of the version with this digest."""
        if message := self.messages.get(pk):
            name = message["name"]
            return SourceText(
                content=message["content"],
                name=" ".join(name.split()),
                user_id=" ".join(message["user_id"].split()),
                time=chat.date_prefix(message["created_at"].astimezone(zone)),
            )
        versions = [content for content, _ in self.facts.get(pk, ())]
        return next((SourceText(text) for text in versions if _digest(text) == digest), None)


def record(
    trace: Mapping[str, Any],
    *,
    agent_id: UUID,
    user_id: str,
    reply_id: UUID | None = None,
    sources: Iterable[UUID] = (),
    own_texts: Sequence[str] = (),
    zone: tzinfo = UTC,
) -> RecallEvent:
    """Write the recall event of a reply, in the transaction of the reply.

    Args:
        trace: the recall and the prompt, as `Prompt.trace` returns them.
        agent_id: the agent that wrote the reply.
        user_id: the user whom it answers.
        reply_id: the reply.
        sources: the ids of messages and facts that the prompt may contain, in its order.
        own_texts: the agent's texts and other texts of its system prompt that no person has
            written.
        zone: the time zone of the prompt's dates.
    """
    packer = _Packer(trace, sources, own_texts, zone)
    packed = packer.pack()
    event = RecallEvent.objects.create(
        agent_id=agent_id,
        user_id=user_id,
        reply_id=reply_id,
        sources=packer.ids[: packer.source_count],
        left_out=packer.ids[packer.source_count :],
        packed=packed,
        unmatched=packer.unmatched if packer.unmatched and packer.is_complete else None,
        hit_count=len(trace["hits"]),
        cut_count=len(trace["cut"]),
        injected_count=len(trace["injected"]),
        fact_count=sum(not fact["reason"] for fact in trace["facts"]),
        turn_count=sum(
            len(section["messages"])
            for section in (trace["prompt"] or {}).get("sections", ())
            if section["name"] == "session"
        ),
        abstained=trace["abstained"],
        embedding_model=trace["embedding_model"],
        milliseconds=trace["milliseconds"],
    )
    PromptSource.objects.bulk_create(
        PromptSource(event_id=event.pk, source_id=pk)
        for pk in event.sources
        if packer.rows.user_ids(pk) != {user_id}
    )
    return event


def record_prompt(reply: Message, prompt: Prompt) -> RecallEvent:
    """Write the recall event of a reply to a message; see `record`."""
    question = [] if reply.in_reply_to_id is None else [reply.in_reply_to_id]  # the prompt's last
    return record(
        prompt.trace(),
        agent_id=reply.answered_by_id or reply.agent_id,
        user_id=reply.user_id,
        reply_id=reply.pk,
        sources=[*prompt.source_ids, *question],
        own_texts=prompt.own_texts,
        zone=prompt.gathered.zone,
    )


class _Packer:
    """Packs one trace."""

    def __init__(
        self,
        trace: Mapping[str, Any],
        sources: Iterable[UUID],
        own_texts: Sequence[str],
        zone: tzinfo,
    ) -> None:
        self.trace, self.zone = trace, zone
        self.own_texts = own_texts
        given = list(dict.fromkeys(sources))
        hits, facts = trace["hits"], trace["facts"]
        turns = [turn for hit in hits for turn in (hit, *hit.get("neighbours", ()))]
        needed = [*given, *filter(None, (as_uuid(fact["memory_id"]) for fact in facts))]
        self.rows = SourceRows([*needed, *(UUID(turn["message_id"]) for turn in turns)])
        self.ids = [pk for pk in given if self.rows.user_ids(pk)]
        # Without one that was erased meanwhile, the unmatched texts must not be stored.
        self.is_complete = all(map(self.rows.user_ids, needed))
        self.source_count = len(self.ids)
        self.unmatched: list[str] = []
        self.digests: dict[int, int] = {}
        for fact in facts:
            pk = as_uuid(fact["memory_id"])
            digest = _digest(fact["content"])
            if pk is not None and self.rows.text(pk, digest) is not None:
                self.digests[self.index(pk)] = digest
        quotes = self._quotes()
        self.splitter = Splitter(
            [
                SourceText(text.content, text.name, text.user_id, text.time, quotes.get(number, ()))
                for number, pk in enumerate(self.ids)
                if (text := self.rows.text(pk, self.digests.get(number), zone) or SourceText(""))
            ]
        )

    def pack(self) -> bytes:
        """Return the bytes of the trace."""
        trace, prompt = self.trace, self.trace["prompt"]
        found = [*trace["hits"], *trace["cut"]]
        document = [
            VERSION,
            self.text(trace["query"]),
            [self.text(line) for line in trace["injected"]],
            [self._hit(hit) for hit in trace["hits"]],
            [
                [
                    self.index(UUID(cut["message_id"])),
                    position_or_value(REASONS, cut["reason"]),
                    *self._exclusions(cut),
                ]
                for cut in trace["cut"]
            ],
            _pack_scores(found),
            [self._fact(fact) for fact in trace["facts"]],
            prompt and self._prompt(prompt),
            # Keys of msgpack's maps are texts.
            [list(item) for item in self.digests.items()],
            self._reranker(),
            str(self.zone),
        ]
        compressor = zlib.compressobj(wbits=_WBITS, zdict=_USUAL)
        return compressor.compress(ormsgpack.packb(document)) + compressor.flush()

    def index(self, pk: UUID) -> int:
        """Return the number of a row; one that is no source of the prompt is added."""
        if pk not in self.ids:
            self.ids.append(pk)
        return self.ids.index(pk)

    def text(self, text: str) -> Any:
        """Return the segments of a text, as they are stored."""
        return self.splitter.split(text, self.unmatched)

    def _quotes(self) -> dict[int, tuple[tuple[int, int], ...]]:
        """Return start and end of the quotes of facts, by the numbers of their messages."""
        quotes: dict[int, list[tuple[int, int]]] = {}
        for fact in self.trace["facts"]:
            for pk in filter(None, map(as_uuid, fact["message_ids"] if fact["quote"] else ())):
                content = self.rows.messages.get(pk, {}).get("content", "")
                if (start := content.find(fact["quote"])) >= 0:
                    span = (start, start + len(fact["quote"]))
                    quotes.setdefault(self.index(pk), []).append(span)
        return {number: tuple(spans) for number, spans in quotes.items()}

    def _hit(self, hit: Mapping[str, Any]) -> Any:
        pk = UUID(hit["message_id"])
        if pk not in self.rows.messages:
            self.unmatched.append(json.dumps(hit))
            return len(self.unmatched) - 1
        return [
            *self._turn(hit),
            [self._turn(turn) for turn in hit["neighbours"]],
            self._exclusions(hit),
        ]

    def _turn(self, turn: Mapping[str, Any]) -> list[Any]:
        pk = UUID(turn["message_id"])
        is_whole = self.rows.messages.get(pk, {}).get("content") == turn["content"]
        return [self.index(pk), None if is_whole else self.text(turn["content"])]

    def _exclusions(self, found: Mapping[str, Any]) -> list[Any]:
        return [
            [
                words["start"],
                words["end"],
                words["memory_id"] and self.index(UUID(words["memory_id"])),
            ]
            for words in found["excluded"]
        ]

    def _fact(self, fact: Mapping[str, Any]) -> list[Any]:
        pk = as_uuid(fact["memory_id"])
        return [
            fact["memory_id"] if pk is None else self.index(pk),
            self.text(fact["content"]),
            self.text(fact["quote"]),
            [self.index(UUID(message_id)) for message_id in fact["message_ids"]],
            fact["score"],
            fact["probability"],
            fact["said_at"],
            fact["reason"],
        ]

    def _reranker(self) -> list[Any] | None:
        reranker = self.trace.get("reranker")
        ranked = [
            [self.index(pk), memory["score"]]
            for memory in (reranker or {}).get("ranked", ())
            if (pk := as_uuid(memory["id"])) is not None
        ]
        return reranker and [*(reranker[name] for name in RERANKER), ranked]

    def _prompt(self, prompt: Mapping[str, Any]) -> list[Any]:
        return [
            prompt["model_tier"],
            prompt["budget"],
            prompt["tokens"],
            [
                [
                    *(section[name] for name in ("name", "tokens", "share", "left_out")),
                    section["truncated"],
                    [[name] if name == DESCRIPTION else self.text(name) for name in section["cut"]],
                    [self._message(message, section["name"]) for message in section["messages"]],
                ]
                for section in prompt["sections"]
            ],
        ]

    def _message(self, message: Mapping[str, Any], section: str) -> list[Any]:
        content = message.get("content")
        if message.keys() != {"role", "content"} or not isinstance(content, str):
            return [None, self.text(json.dumps(message))]
        role = position_or_value(ROLES, message["role"])
        if section == "system":
            return [role, split_own(content, self.own_texts, self.unmatched)]
        memories = "\n".join(self.trace["injected"])
        if section == "memory" and memories and content.endswith(f"\n{memories}"):
            heading = self.splitter.split(content.removesuffix(memories), self.unmatched)
            return [role, [*heading, MEMORIES]]
        return [role, self.text(content)]


def unpack(packed: bytes) -> Any:
    """Return the document of a packed column."""
    decompressor = zlib.decompressobj(_WBITS, _USUAL)
    return ormsgpack.unpackb(decompressor.decompress(packed, _MAX_UNPACKED_BYTES))


def _pack_scores(found: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the names of channels, and a column of each score and each of them."""
    names = list(dict.fromkeys(chain.from_iterable(hit.get("channels", {}) for hit in found)))
    columns = [[hit.get(name) for hit in found] for name in SCORES]
    columns += [[hit.get("channels", {}).get(name) for hit in found] for name in names]
    values = np.clip(np.array(columns, np.float64), -_MAX_SCORE, _MAX_SCORE)
    return [[position_or_value(CHANNELS, name) for name in names], values.astype("<f2").tobytes()]


def position_or_value(values: Sequence[Any], value: Any) -> Any:
    """Return the position of a value in `values`, or the value if it is not in them."""
    return values.index(value) if value in values else value


def _digest(text: str) -> int:
    return zlib.crc32(text.encode())
