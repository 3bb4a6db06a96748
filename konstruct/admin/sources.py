"""Sources of a reply: each once, with its rank, its reasons and its later changes."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import F, OuterRef, Subquery
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext, gettext_lazy as _

from konstruct.admin import access, pages
from konstruct.admin.fact_review import WHOLE_MESSAGE, ReasonForm
from konstruct.orchestrator.models import Agent, Escalation
from memory.conf import ERASED_PART, UNANSWERED_CHANNELS
from memory.context.recall_traces import traces
from memory.facts import exclude_from_recall, include_again
from memory.models import MemoryEntry, Message, RecallEvent, RecallExclusion, Role
from memory.models.facts import FactState
from memory.recall.service import unknown_languages
from memory.text.sentences import sentence_spans
from tenants.admin.sites import Content, tenant_site
from tenants.audit.models import Action

MAX_TURN_CHARACTERS: Final = 400
# The parts of a memory's score.
SIGNALS: Final = {
    "cosine": _("meaning"),
    "lexical": _("words"),
    "subject": _("names"),
    "time": _("time"),
    "session": _("conversation"),
    "fact": _("fact"),
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
    "below the reranker's minimum": _("The reranker gave it a low score."),
}
SECTIONS: Final = {
    "system": _("Agent instructions"),
    "memory": _("Recalled memories"),
    "session": _("Recent turns"),
    "task": _("Message"),
}
_STATES: Final = {
    FactState.SUPERSEDED: _("superseded since"),
    FactState.RETRACTED: _("retracted since"),
    FactState.REJECTED: _("rejected since"),
    FactState.PROPOSED: _("waits for a review again"),
}


def sources_of(reply: Message) -> dict[str, Any] | None:
    """Return the sources of a stored reply for why.html; None without a record of them.

    A person's answer has no other source.
    """
    event = RecallEvent.objects.filter(reply=reply).first()
    if event is None:
        if not is_written_by_person(reply):
            return None
        thread = {name: getattr(reply, name) for name in ("user_id", "thread_id", "agent_id")}
        opened = Escalation.objects.to_people().filter(opened_at__lte=reply.created_at, **thread)
        return {"person": reply.name, "escalation": opened.order_by("-opened_at").first()}
    return with_sources(
        traces([event])[0],
        [pk for pk in event.sources if pk != reply.in_reply_to_id],
        agent_id=reply.answered_by_id or reply.agent_id,
        user_id=reply.user_id,
        replied_at=reply.created_at,
    )


def is_written_by_person(message: Message) -> bool:
    """Whether a person wrote the message instead of an agent."""
    return bool(
        message.role == Role.ASSISTANT
        and message.answered_by_id is None
        and message.name
        and message.channel not in UNANSWERED_CHANNELS
    )


def with_sources(
    trace: Mapping[str, Any],
    source_ids: Sequence[UUID],
    *,
    agent_id: UUID,
    user_id: str,
    replied_at: datetime | None = None,
) -> dict[str, Any]:
    """Return the sources of a reply for why.html.

    Args:
        trace: the trace of the recall, from the pipeline or a recall event.
        source_ids: the messages and facts in the prompt, without the message that it answers.
        agent_id: the agent that wrote the reply.
        user_id: the user of the reply.
        replied_at: the time of the reply; None for one that was written just now.
    """
    agent = Agent.objects.filter(pk=agent_id).first()
    prompt = trace.get("prompt") or {}
    sections = {section["name"]: section["messages"] for section in prompt.get("sections", ())}
    hits = [memory_context(hit, hit) for hit in trace["hits"]]
    cut = left_out_context(trace["cut"])
    ranked = (trace.get("reranker") or {}).get("ranked", ())
    ranks = {memory["id"]: (rank, memory["score"]) for rank, memory in enumerate(ranked, 1)}
    facts = [
        {**fact, "reranked": ranks.get(fact["memory_id"])} for fact in trace.get("facts") or ()
    ]
    given_facts = [fact for fact in facts if not fact.get("reason")]
    facts_left_out = [fact for fact in facts if fact.get("reason")]
    recalled = {pages.as_uuid(hit["message_id"]) for hit in hits}
    quoted = {pages.as_uuid(pk) for fact in given_facts for pk in fact.get("message_ids") or ()}
    changes = _Changes({*recalled, *quoted, *source_ids}, given_facts, replied_at)
    for memory in (*hits, *cut):
        memory |= {"user_id": user_id, "agent_name": agent.name if agent else ""}
        memory["reranked"] = ranks.get(memory["message_id"])
    for hit in hits:
        hit |= changes.message_changes(hit["message_id"])
        if hit["content"] == ERASED_PART:
            hit["changes"] = [gettext("erased since")]
    turns = _turns(sections.get("session", []), changes, {*source_ids} - recalled - quoted)
    return {
        **trace,
        **prompt,
        "hits": hits,
        "cut": cut,
        "sections": [
            {
                **section,
                "title": SECTIONS.get(section["name"], section["name"]),
                "percent": min(100, round(100 * section["tokens"] / max(1, section["share"]))),
            }
            for section in prompt.get("sections", ())
        ],
        "agent": agent,
        "unknown_languages": unknown_languages(
            trace["query"], user_id, agent.language if agent else ""
        ),
        "user_id": user_id,
        "facts_given": [{**fact, "changes": changes.fact_changes(fact)} for fact in given_facts],
        "facts_left_out": facts_left_out,
        "left_out_count": len(facts_left_out),
        "turns": turns,
    }


def left_out_context(cut: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the memories that were left out, with their texts, which one query reads.

    Args:
        cut: the entries of a trace, with `message_id`, `reason`, `score` and `channels`.
    """
    cut = list(cut)
    ids = [hit["message_id"] for hit in cut if hit.get("message_id")]
    rows = Message.objects.filter(pk__in=ids).annotate(shown=Left("content", 300))
    texts = {
        str(row["id"]): row for row in rows.values("id", "shown", "role", "name", "created_at")
    }
    return [memory_context(hit, texts.get(str(hit.get("message_id")), {})) for hit in cut]


def memory_context(hit: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    """Return one memory for memory.html.

    Args:
        hit: the entry of a trace.
        message: the values of its message; empty if it was removed.
    """
    created_at, probability = message.get("created_at"), hit.get("probability")
    reason, parts = hit.get("reason", ""), hit.get("channels", {})
    return {
        "message_id": str(hit.get("message_id") or ""),
        "content": message.get("content") or message.get("shown") or hit.get("content", ""),
        "role": message.get("role", ""),
        "name": message.get("name", ""),
        "created_at": parse_datetime(created_at) if isinstance(created_at, str) else created_at,
        "score": hit.get("score", 0.0),
        "probability_percent": None if probability is None else round(100 * probability),
        "signals": [(label, parts[name]) for name, label in SIGNALS.items() if parts.get(name)],
        "reason": reason,
        "why_not": REASONS.get(reason, reason),
    }


class _Changes:
    """Changes of messages and facts since a reply, in three queries."""

    def __init__(
        self,
        message_ids: Iterable[UUID | None],
        facts: Sequence[Mapping[str, Any]],
        since: datetime | None,
    ) -> None:
        ids = [pk for pk in message_ids if pk]
        self.since = since
        names = Agent.objects.filter(pk=OuterRef("agent_id")).values("name")[:1]
        self.messages: dict[Any, Any] = {
            message.pk: message
            for message in Message.objects.filter(pk__in=ids)
            .defer("content", "metadata")
            .annotate(beginning=Left("content", MAX_TURN_CHARACTERS), agent_name=Subquery(names))
        }
        exclusions = RecallExclusion.objects.filter(message_id__in=ids)
        # Exclusions of whole messages are the last.
        by_start = exclusions.order_by(F("start").desc(nulls_last=True))
        self.excluded = {
            pk: exclusion_label(is_whole=start is None)
            for pk, start in by_start.values_list("message_id", "start")
        }
        fact_ids = [pk for fact in facts if (pk := pages.as_uuid(fact.get("memory_id")))]
        self.facts = {
            fact.pk: fact
            for fact in MemoryEntry.objects.entries().filter(pk__in=fact_ids).defer("embedding")
        }

    def message_changes(self, message_id: Any) -> dict[str, Any]:
        """Return the context of a source that is a message."""
        pk = pages.as_uuid(str(message_id or ""))
        message = self.messages.get(pk) if pk else None
        changes = [self.excluded[pk]] if pk in self.excluded else []
        if pk and message is None and self.since is not None:
            changes.append(gettext("erased since"))
        return {
            "changes": changes,
            "is_here": message is not None,
            "is_persons": message is not None and is_written_by_person(message),
        }

    def fact_changes(self, fact: Mapping[str, Any]) -> list[str]:
        """Return the changes of a fact since it was given."""
        pk = pages.as_uuid(fact.get("memory_id"))
        fact_now = self.facts.get(pk) if pk else None
        if fact_now is None:
            return [gettext("deleted or erased since")]
        if fact_now.state != FactState.ACTIVE:
            return [str(_STATES[FactState(fact_now.state)])]
        if fact_now.content != fact["content"]:
            return [gettext("now: %(value)s") % {"value": fact_now.content[:300]}]
        return []


def _turns(
    texts: Sequence[Mapping[str, Any]], changes: _Changes, ids: set[UUID]
) -> list[dict[str, Any]]:
    """Return the recent turns of a prompt, the latest first; without a message, their texts."""
    found = [message for pk, message in changes.messages.items() if pk in ids]
    found.sort(key=attrgetter("created_at", "number"), reverse=True)
    names = ("role", "name", "user_id", "agent_name", "created_at")
    return [
        {
            **{name: getattr(message, name) for name in names},
            "content": message.beginning,
            "message_id": str(message.pk),
            **changes.message_changes(message.pk),
        }
        for message in found
    ] or [
        {**text, "message_id": "", "name": "", "is_erased": ERASED_PART in text["content"]}
        for text in reversed(texts)
    ]


# Sentences of a long message that can be chosen one by one.
MAX_SENTENCES: Final = 200


class ExclusionForm(ReasonForm):
    """The words to exclude, and why."""

    words = forms.ChoiceField(label=_("Exclude"), widget=forms.RadioSelect, initial=WHOLE_MESSAGE)

    def __init__(self, *args: Any, message: Message, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        sentences = sentence_spans(message.content)[:MAX_SENTENCES]
        choices = [(WHOLE_MESSAGE, gettext("The whole message"))]
        if len(sentences) > 1:
            choices += [(f"{start}-{end}", text[:300]) for text, start, end in sentences]
        field: Any = self.fields["words"]
        field.choices = choices
        self.order_fields(["words", "reason"])


def exclusion_label(*, is_whole: bool) -> str:
    """Return in words that a message, or some of its words, is excluded."""
    if is_whole:
        return gettext("excluded from recall")
    return gettext("words of it are excluded from recall")


@tenant_site.page(
    "messages/<uuid:message_id>/exclude/",
    permission="memory.add_recallexclusion",
    title=_("Exclude from recall"),
)
def exclude_message(request: HttpRequest, message_id: UUID) -> Content:
    """Show a message with its exclusions, and exclude it or one of its sentences."""
    message = get_object_or_404(Message, pk=message_id)
    form = ExclusionForm(request.POST or None, message=message)
    if request.method == "POST" and form.is_valid():
        start, _, end = form.cleaned_data["words"].partition("-")
        success = gettext("Excluded. Recall leaves it out from now on.")
        with pages.show_outcome(request, success, form=form, field="words"):
            exclude_from_recall(
                message,
                author=access.author_of(request),
                start=pages.as_number(start),
                end=pages.as_number(end),
                reason=form.cleaned_data["reason"],
            )
        if form.is_valid() and (fact_id := pages.as_uuid(request.POST.get("fact"))):
            return redirect("admin:memory_memoryentry_change", fact_id)
        if form.is_valid():
            return redirect("admin:exclude_message", message_id)
    access.log_row_access(request, Action.VIEW, message)
    return {
        "message": message,
        "form": form,
        "exclusions": [
            (
                exclusion,
                message.content
                if exclusion.start is None
                else message.content[exclusion.start : exclusion.end],
            )
            for exclusion in RecallExclusion.objects.filter(message=message).order_by("created_at")
        ],
    }


@tenant_site.post_page(
    "messages/<uuid:message_id>/include/<uuid:exclusion_id>/",
    permission="memory.delete_recallexclusion",
)
def include_message(request: HttpRequest, message_id: UUID, exclusion_id: UUID) -> HttpResponseBase:
    """Remove an exclusion."""
    message = get_object_or_404(Message, pk=message_id)
    if include_again(message, author=access.author_of(request), exclusion_id=exclusion_id):
        messages.success(request, gettext("Included again: recall can find it."))
    else:
        messages.warning(request, gettext("This exclusion was removed before."))
    return redirect("admin:exclude_message", message_id)
