"""Sources of a reply: the trace of its recall, prepared for templates."""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from django.db.models.functions import Left
from django.utils.dateparse import parse_datetime

from memory.models import Message, PendingEmbedding, RecallEvent

# The features that readers can interpret, by weight: their labels and explanations.
FEATURES: Final = {
    "cosine": ("meaning", "Cosine similarity of its most similar sentence."),
    "lexical": ("words", "Words in common, weighed by their rarity."),
    "coverage": ("coverage", "Share of the question's words that it holds."),
    "session": ("conversation", "How well the best of the same conversation fit."),
    "previous": ("turn before", "Similarity of the turn before it."),
    "following": ("turn after", "How well the turn after it fits."),
    "fact": ("fact", "Cosine similarity of the fact that rests on it."),
    "subject": ("speaker", "1: said by whom the question names; -1: by another."),
    "time": ("time", "1: the question asks when, and it holds a time."),
}
REASONS: Final = {
    "excluded": "The prompt holds it anyway.",
    "excluded: corrected fact": "It states a fact that was corrected.",
    "excluded: message": "It was excluded from recall.",
    "asks the same": "It repeats the question and does not answer it.",
    "below the gate": "It is probably not relevant to the question.",
    "over top_k": "The limit on memories was reached by better ones.",
    "over the budget": "The token budget was reached.",
    "given as a fact": "The prompt has the fact that rests on it.",
}
SECTIONS: Final = {
    "system": "Agent instructions",
    "memory": "Recalled memories",
    "session": "Recent turns",
    "task": "Message",
}


def why_of(reply_id: UUID) -> dict[str, Any] | None:
    """Return the sources of a reply, or None if no trace of it is kept, as of an imported one.

    Args:
        reply_id: the id of the reply's message.
    """
    event: Any = RecallEvent.objects.filter(reply_id=reply_id).values().first()
    if event is None:
        pending = PendingEmbedding.objects.filter(message_id=reply_id)
        event = pending.values_list("recall_trace", flat=True).first()
    return None if event is None else why_from(event)


def why_from(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sources of a reply for why.html.

    Args:
        trace: the trace of a recall, as the pipeline makes it and a recall event keeps it.
    """
    prompt = trace.get("prompt") or {}
    return {
        **trace,
        **prompt,
        "hits": [remembered(hit, hit) for hit in trace["hits"]],
        "cut": left_out(trace["cut"]),
        "sections": [_section(section) for section in prompt.get("sections", ())],
    }


def left_out(cut: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return memories that were left out, with their texts, which a trace does not hold: one query.

    Args:
        cut: the entries of a trace, with `message_id`, `reason`, `score` and `channels`.
    """
    cut = list(cut)
    ids = [each["message_id"] for each in cut if "message_id" in each]
    rows = Message.objects.filter(pk__in=ids).annotate(shown=Left("content", 300))
    found = {
        str(row["id"]): row for row in rows.values("id", "shown", "role", "name", "created_at")
    }
    return [remembered(each, found.get(str(each.get("message_id")), {})) for each in cut]


def remembered(found: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    """Return one memory for memory.html.

    Args:
        found: the entry of a trace.
        message: the values of its message; empty if it was removed.
    """
    created_at, probability = message.get("created_at"), found.get("probability")
    channels, reason = found.get("channels", {}), found.get("reason", "")
    names = [name for name in FEATURES if name in channels]
    names += [name for name in channels if name not in FEATURES]
    return {
        "message_id": str(found.get("message_id", "")),
        "content": message.get("content") or message.get("shown") or found.get("content", ""),
        "role": message.get("role", ""),
        "name": message.get("name", ""),
        "created_at": parse_datetime(created_at) if isinstance(created_at, str) else created_at,
        "score": found.get("score", 0.0),
        "probability_percent": None if probability is None else round(100 * probability),
        "features": [_feature(name, channels[name]) for name in names],
        "reason": reason,
        "why_not": REASONS.get(reason, reason),
    }


def _feature(name: str, value: float) -> dict[str, Any]:
    label, explanation = FEATURES.get(name, (name, ""))
    percent = round(100 * min(max(value, 0.0), 1.0))
    return {"name": name, "label": label, "help": explanation, "value": value, "percent": percent}


def _section(section: Mapping[str, Any]) -> dict[str, Any]:
    tokens, share = section["tokens"], section["share"]
    return {
        **section,
        "title": SECTIONS.get(section["name"], section["name"]),
        "percent": min(100, round(100 * tokens / share)) if share else 0,
    }
