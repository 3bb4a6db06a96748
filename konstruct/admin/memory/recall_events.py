"""Sources of a reply: the trace of its recall for templates."""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from django.db.models.functions import Left
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_lazy as _

from memory.context.recall_traces import traces
from memory.models import Message, RecallEvent

# The features that readers can interpret, by weight: their labels and explanations.
FEATURES: Final = {
    "cosine": (_("meaning"), _("Cosine similarity of its most similar sentence.")),
    "lexical": (_("words"), _("Words in common, weighed by their rarity.")),
    "coverage": (_("coverage"), _("Share of the question's words that it contains.")),
    "session": (_("conversation"), _("How well the best of the same conversation fit.")),
    "previous": (_("turn before"), _("Similarity of the turn before it.")),
    "following": (_("turn after"), _("How well the turn after it fits.")),
    "fact": (_("fact"), _("Cosine similarity of the fact that is based on it.")),
    "subject": (
        _("speaker"),
        _("1: written by the person that the question names; -1: by another."),
    ),
    "time": (_("time"), _("1: the question asks for a time, and the memory contains one.")),
    "words": (_("length"), _("Logarithm of its number of words.")),
    "gap": (_("behind the best"), _("How far its score is below the best one.")),
    "unknown": (_("unknown words"), _("Share of the question's words that are in no message.")),
    "unknown_name": (_("unknown name"), _("1: the question names whom no message names.")),
    "anonymous": (_("no name"), _("1: the question names no speaker.")),
    "mean_cosine": (_("all messages"), _("Average cosine similarity of all messages.")),
    "scarcity": (_("few messages"), _("Higher, the fewer messages there are.")),
}
REASONS: Final = {
    "excluded": _("It is already in the prompt."),
    "excluded: corrected fact": _("It states a fact that was corrected."),
    "excluded: message": _("It was excluded from recall."),
    "asks the same": _("It repeats the question and does not answer it."),
    "below the gate": _("It is probably not relevant to the question."),
    "over top_k": _("The limit on memories was reached by better ones."),
    "same text": _("It repeats the text of a better one, or what the built-in responder recalled."),
    "over the budget": _("The token budget was reached."),
    "given as a fact": _("The prompt has the fact that is based on it."),
}
SECTIONS: Final = {
    "system": _("Agent instructions"),
    "memory": _("Recalled memories"),
    "session": _("Recent turns"),
    "task": _("Message"),
}


def stored_trace_context(reply_id: UUID) -> dict[str, Any] | None:
    """Return the sources of a reply, or None if no trace of it is kept, as of an imported one.

    Args:
        reply_id: the id of the reply's message.
    """
    events = list(RecallEvent.objects.filter(reply_id=reply_id))
    return trace_context(traces(events)[0]) if events else None


def trace_context(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sources of a reply for why.html.

    Args:
        trace: the trace of a recall, from the pipeline or a recall event.
    """
    prompt = trace.get("prompt") or {}
    return {
        **trace,
        **prompt,
        "hits": [memory_context(hit, hit) for hit in trace["hits"]],
        "cut": left_out_context(trace["cut"]),
        "sections": [_section(section) for section in prompt.get("sections", ())],
    }


def left_out_context(cut: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the memories that were left out, with their texts, which one query reads.

    Args:
        cut: the entries of a trace, with `message_id`, `reason`, `score` and `channels`.
    """
    cut = list(cut)
    ids = [hit["message_id"] for hit in cut if hit.get("message_id")]
    rows = Message.objects.filter(pk__in=ids).annotate(shown=Left("content", 300))
    messages_by_id = {
        str(row["id"]): row for row in rows.values("id", "shown", "role", "name", "created_at")
    }
    return [memory_context(hit, messages_by_id.get(str(hit.get("message_id")), {})) for hit in cut]


def memory_context(hit: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    """Return one memory for memory.html.

    Args:
        hit: the entry of a trace.
        message: the values of its message; empty if it was removed.
    """
    created_at, probability = message.get("created_at"), hit.get("probability")
    channels, reason = hit.get("channels", {}), hit.get("reason", "")
    names = [name for name in FEATURES if name in channels]
    names += [name for name in channels if name not in FEATURES]
    return {
        "message_id": str(hit.get("message_id") or ""),
        "content": message.get("content") or message.get("shown") or hit.get("content", ""),
        "role": message.get("role", ""),
        "name": message.get("name", ""),
        "created_at": parse_datetime(created_at) if isinstance(created_at, str) else created_at,
        "score": hit.get("score", 0.0),
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
