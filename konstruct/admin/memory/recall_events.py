"""Why a reply was said: a recall's trace, made ready to be read. It reads what the trace names."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models.functions import Left
from django.utils.dateparse import parse_datetime

from memory.models import Message, PendingEmbedding, RecallEvent

# The features that people can make something of, the weightiest first, and what they say.
FEATURES: Final = {
    "cosine": ("meaning", "Cosine similarity of its most similar sentence."),
    "lexical": ("words", "Words in common, weighed by their rarity."),
    "coverage": ("coverage", "Share of the question's words that it holds."),
    "session": ("conversation", "How well the best of the same conversation fit."),
    "previous": ("turn before", "Similarity of the turn before it."),
    "following": ("turn after", "How well the turn after it fits."),
    "subject": ("speaker", "1: said by whom the question names; -1: by another."),
    "time": ("time", "1: the question asks when, and it holds a time."),
}
REASONS: Final = {
    "excluded": "The prompt holds it anyway.",
    "asks the same": "It asks the same, and says nothing.",
    "below the gate": "Probably beside the question.",
    "over top_k": "Better ones filled the places.",
    "over the budget": "The prompt had no more room.",
}
SECTIONS: Final = {
    "system": "Who the agent is",
    "memory": "What it remembers",
    "session": "The recent turns",
    "task": "The message",
}


@dataclass(frozen=True, slots=True)
class Feature:
    """What one channel said of a memory."""

    name: str
    label: str
    help: str
    value: float

    @property
    def percent(self) -> int:
        """The length of its bar."""
        return round(100 * min(max(self.value, 0.0), 1.0))


@dataclass(frozen=True, slots=True)
class Remembered:
    """One memory that was found: given, or left out for a reason."""

    message_id: str
    content: str
    role: str
    name: str
    created_at: datetime | None
    score: float
    probability: float | None
    features: list[Feature]
    reason: str = ""

    @property
    def why_not(self) -> str:
        """The reason in words."""
        return REASONS.get(self.reason, self.reason)

    @property
    def probability_percent(self) -> int | None:
        """The gate's probability, in percent."""
        return None if self.probability is None else round(100 * self.probability)


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the prompt."""

    name: str
    title: str
    tokens: int
    share: int
    left_out: int
    truncated: bool
    cut: list[str]
    messages: list[dict[str, str]]

    @property
    def percent(self) -> int:
        """How much of its share it fills."""
        return min(100, round(100 * self.tokens / self.share)) if self.share else 0


@dataclass(frozen=True, slots=True)
class Why:
    """Everything that is known of why a reply was said."""

    query: str
    hits: list[Remembered]
    cut: list[Remembered]
    facts: list[dict[str, Any]]
    injected: list[str]
    abstained: bool
    embedding_model: str
    milliseconds: float
    sections: list[Section]
    tokens: int | None
    budget: int | None
    model_tier: str


def why_of(reply_id: UUID) -> Why | None:
    """Why the reply was said; None where nothing was kept of it, as of an imported one."""
    event = RecallEvent.objects.filter(reply_id=reply_id).values().first()
    if event is None:
        event = (
            PendingEmbedding.objects.filter(message_id=reply_id)
            .values_list("recall_trace", flat=True)
            .first()
        )
    return None if event is None else why_from(event)


def why_from(trace: Mapping[str, Any]) -> Why:
    """Read a trace, as the pipeline makes it and a recall event keeps it."""
    prompt = trace.get("prompt") or {}
    return Why(
        query=trace["query"],
        hits=[_remembered(hit, hit) for hit in trace["hits"]],
        cut=left_out(trace["cut"]),
        facts=list(trace.get("facts") or ()),
        injected=trace["injected"],
        abstained=trace["abstained"],
        embedding_model=trace["embedding_model"],
        milliseconds=trace["milliseconds"],
        sections=[_section(section) for section in prompt.get("sections", ())],
        tokens=prompt.get("tokens"),
        budget=prompt.get("budget"),
        model_tier=prompt.get("model_tier", ""),
    )


def features_of(channels: Mapping[str, float]) -> list[Feature]:
    """What each channel said, those that people can read first."""
    known = [name for name in FEATURES if name in channels]
    other = [name for name in channels if name not in FEATURES]
    return [
        Feature(name, *FEATURES.get(name, (name, "")), value=channels[name])
        for name in (*known, *other)
    ]


def left_out(cut: Iterable[Mapping[str, Any]]) -> list[Remembered]:
    """What was left out, with the texts, which a trace does not hold: one query."""
    cut = list(cut)
    said = {
        str(row["id"]): row
        for row in Message.objects.filter(
            pk__in=[each["message_id"] for each in cut if "message_id" in each]
        )
        .annotate(shown=Left("content", 300))
        .values("id", "shown", "role", "name", "created_at")
    }
    return [_remembered(each, said.get(str(each.get("message_id")), {})) for each in cut]


def _remembered(found: Mapping[str, Any], said: Mapping[str, Any]) -> Remembered:
    when = said.get("created_at")
    return Remembered(
        message_id=str(found.get("message_id", "")),
        content=said.get("content") or said.get("shown") or found.get("content", ""),
        role=said.get("role", ""),
        name=said.get("name", ""),
        created_at=parse_datetime(when) if isinstance(when, str) else when,
        score=found.get("score", 0.0),
        probability=found.get("probability"),
        features=features_of(found.get("channels", {})),
        reason=found.get("reason", ""),
    )


def _section(section: Mapping[str, Any]) -> Section:
    return Section(
        name=section["name"],
        title=SECTIONS.get(section["name"], section["name"]),
        tokens=section["tokens"],
        share=section["share"],
        left_out=section["left_out"],
        truncated=section["truncated"],
        # Prompts of before tasks had data do not say it.
        cut=section.get("cut", []),
        messages=section["messages"],
    )
