"""Reads recall events: the recall and the prompt of a reply, joined with the present rows."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from memory import conf, models
from memory.context import recall_events, segments


def traces(events: Iterable[models.RecallEvent]) -> list[dict[str, Any]]:
    """Return the recalls and the prompts of events, as they were recorded, from the present rows.

    An erased or deleted part is "[erased]", and `is_erased` is true.
    """
    events = list(events)
    rows = recall_events.SourceRows(
        chain.from_iterable((*event.sources, *event.left_out) for event in events)
    )
    return [_Reader(event, rows).trace() for event in events]


def with_queries(events: Iterable[models.RecallEvent]) -> list[models.RecallEvent]:
    """Return the events, each with its search query as `query`. One statement reads all of them."""
    events = list(events)
    rows = recall_events.SourceRows(chain.from_iterable(event.sources for event in events))
    for event in events:
        reader = _Reader(event, rows)
        event.query = reader.text(reader.document[1])
    return events


class _Reader:
    """Reads one event."""

    def __init__(self, event: models.RecallEvent, rows: recall_events.SourceRows) -> None:
        self.event, self.rows = event, rows
        self.document = recall_events.unpack(bytes(event.packed))
        digests = dict(self.document[8])
        self.ids = [*event.sources, *event.left_out]
        zone = ZoneInfo(self.document[10])
        self.sources = [
            rows.text(pk, digests.get(number), zone) for number, pk in enumerate(self.ids)
        ]
        # Foreign texts may quote any source of the prompt.
        is_complete = all(rows.user_ids(pk) for pk in event.sources)
        self.unmatched = event.unmatched if is_complete else None
        self.is_erased = False

    def text(self, stored: Any) -> str:
        """Return the text of stored segments."""
        text = segments.join(stored, self.sources, self.unmatched)
        self.is_erased = self.is_erased or conf.ERASED_PART in text
        return text

    def trace(self) -> dict[str, Any]:
        """Return the trace."""
        _, query, injected, hits, cuts, scores, facts, prompt, _, reranker, _ = self.document
        lines = [self.text(line) for line in injected]
        scored = iter(_unpack_scores(scores, len(hits) + len(cuts)))
        exclusions = self._reasons(hits, cuts)
        return {
            "query": self.text(query),
            "hits": [self._hit(hit, exclusions) | next(scored) for hit in hits],
            "cut": [
                {
                    "message_id": self._id(number),
                    "reason": value_at(recall_events.REASONS, reason),
                    **next(scored),
                    "excluded": self._exclusions(number, words, exclusions),
                }
                for number, reason, *words in cuts
            ],
            "injected": lines,
            "facts": [self._fact(fact) for fact in facts],
            "reranker": reranker and self._reranker(reranker),
            "prompt": prompt and self._prompt(prompt, lines),
            "abstained": self.event.abstained,
            "embedding_model": self.event.embedding_model,
            "milliseconds": self.event.milliseconds,
            "is_erased": self.is_erased,
        }

    def _id(self, number: int | str | None) -> str | None:
        if not isinstance(number, int):
            return number
        return None if self.ids[number] == recall_events.NO_ID else str(self.ids[number])

    def _reasons(self, hits: Sequence[Any], cuts: Sequence[Any]) -> dict[tuple[Any, ...], str]:
        """Return the reasons of exclusions that still exist."""
        numbers = [hit[0] for hit in hits if isinstance(hit, list) and hit[3]]
        numbers += [number for number, _, *words in cuts if words]
        if not numbers:
            return {}
        rows = models.RecallExclusion.objects.filter(message_id__in=[self.ids[n] for n in numbers])
        keys = ("message_id", "start", "end", "memory_id", "reason")
        return {tuple(key): reason for *key, reason in rows.values_list(*keys)}

    def _hit(self, hit: Any, reasons: Mapping[tuple[Any, ...], str]) -> dict[str, Any]:
        if isinstance(hit, int):
            text = self.text([[hit]])
            return {"content": text} if text == conf.ERASED_PART else json.loads(text)
        number, content, neighbours, words = hit
        row = self.rows.messages.get(self.ids[number], {})
        return {
            "message_id": self._id(number),
            "external_id": row.get("external_id"),
            "thread_id": row.get("thread_id", ""),
            **self._turn(number, content),
            "neighbours": [
                {"message_id": self._id(near), **self._turn(near, text)}
                for near, text in neighbours
            ],
            "excluded": self._exclusions(number, words, reasons),
        }

    def _turn(self, number: int, content: Any) -> dict[str, Any]:
        row = self.rows.messages.get(self.ids[number], {})
        created_at: datetime | None = row.get("created_at")
        return {
            "role": row.get("role", ""),
            "name": row.get("name", ""),
            "content": self.text([number] if content is None else content),
            "created_at": created_at and created_at.isoformat(),
        }

    def _exclusions(
        self, number: int, words: Sequence[Any], reasons: Mapping[tuple[Any, ...], str]
    ) -> list[dict[str, Any]]:
        message_id = self.ids[number]
        return [
            {
                "message_id": self._id(number),
                "start": start,
                "end": end,
                "memory_id": self._id(fact),
                "reason": reasons.get(
                    (message_id, start, end, None if fact is None else self.ids[fact]), ""
                ),
            }
            for start, end, fact in words
        ]

    def _fact(self, fact: Sequence[Any]) -> dict[str, Any]:
        number, content, quote, messages, score, probability, said_at, reason = fact
        return {
            "memory_id": self._id(number),
            "content": self.text(content),
            "score": score,
            "reason": reason,
            "probability": probability,
            "quote": self.text(quote),
            "said_at": said_at,
            "message_ids": [pk for message in messages if (pk := self._id(message))],
        }

    def _reranker(self, reranker: Sequence[Any]) -> dict[str, Any]:
        *values, ranked = reranker
        return {
            **dict(zip(recall_events.RERANKER, values, strict=True)),
            "ranked": [{"id": self._id(number), "score": score} for number, score in ranked],
        }

    def _prompt(self, prompt: Sequence[Any], injected: Sequence[str]) -> dict[str, Any]:
        model_tier, budget, tokens, sections = prompt
        names = ("name", "tokens", "share", "left_out", "truncated")
        return {
            "model_tier": model_tier,
            "budget": budget,
            "tokens": tokens,
            "sections": [
                {
                    **dict(zip(names, values, strict=True)),
                    "cut": [self.text(name) for name in cut],
                    "messages": [
                        self._message(role, stored, injected) for role, stored in messages
                    ],
                }
                for *values, cut, messages in sections
            ],
        }

    def _message(self, role: str | int | None, stored: Any, injected: Sequence[str]) -> Any:
        if role is None:
            text = self.text(stored)
            try:
                return json.loads(text)
            except ValueError:  # a part of it is erased
                return {"role": "", "content": text}
        heading = [segment for segment in stored if segment is not recall_events.MEMORIES]
        memories = "\n".join(injected) if len(heading) < len(stored) else ""
        return {
            "role": value_at(recall_events.ROLES, role),
            "content": self.text(heading) + memories,
        }


def _unpack_scores(packed: Sequence[Any], count: int) -> list[dict[str, Any]]:
    numbers, stored = packed
    names = [value_at(recall_events.CHANNELS, number) for number in numbers]
    columns = np.frombuffer(stored, "<f2").reshape(len(recall_events.SCORES) + len(names), count)
    rows = [[_number(value) for value in row] for row in columns.T]
    return [
        {
            **dict(zip(recall_events.SCORES, row, strict=False)),
            "channels": {
                name: value
                for name, value in zip(names, row[len(recall_events.SCORES) :], strict=True)
                if value is not None
            },
        }
        for row in rows
    ]


def value_at(values: Sequence[Any], stored: Any) -> Any:
    """Return the value that `position_or_value` has stored."""
    return values[stored] if isinstance(stored, int) else stored


def _number(value: Any) -> float | None:
    return None if math.isnan(value) else float(f"{value:.4g}")
