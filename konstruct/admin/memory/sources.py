"""Sources of a reply: each once, with its rank, its reasons and its later changes."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import OuterRef, Subquery
from django.db.models.functions import Left
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from konstruct.admin.memory.exclusions import excluded_labels
from konstruct.admin.memory.recall_events import stored_trace_context
from konstruct.admin.pages import as_uuid
from konstruct.orchestrator.builder import INSTRUCTIONS_OPENING
from konstruct.orchestrator.models import Agent, Escalation
from memory.conf import ERASED_PART, UNANSWERED_CHANNELS
from memory.exceptions import InvalidArgument
from memory.models import MemoryEntry, Message, Role
from memory.models.facts import FactState
from memory.recall.policy import RecallWeights

# Messages before a reply among which its recent turns are looked for.
MAX_TURNS: Final = 80
# A turn is recognised by the first PROBE_CHARACTERS of its message; a message of fewer than
# SHORT_CHARACTERS has to end a line.
PROBE_CHARACTERS: Final = 60
SHORT_CHARACTERS: Final = 16
MAX_TURN_CHARACTERS: Final = 400
SIGNALS: Final = {
    "meaning": _("One of its sentences is similar to the question."),
    "words": _("It has words of the question. Rare words count more."),
    "names": _("The question names its author."),
    "time": _("The question asks for a time, and it contains one."),
    "conversation": _("Its conversation matches the question."),
    "fact": _("A fact based on it is similar to the question."),
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
    why = stored_trace_context(reply.pk)
    if why is None:
        return _context_of_person_answer(reply) if is_written_by_person(reply) else None
    return with_sources(
        why,
        agent_id=reply.answered_by_id or reply.agent_id,
        user_id=reply.user_id,
        thread_id=reply.thread_id,
        replied_at=reply.created_at,
        excluded_ids=(reply.pk, reply.in_reply_to_id),
    )


def is_written_by_person(message: Message) -> bool:
    """Whether a person wrote the message instead of an agent."""
    return bool(
        message.role == Role.ASSISTANT
        and message.answered_by_id is None
        and message.name
        and message.channel not in UNANSWERED_CHANNELS
    )


def _context_of_person_answer(reply: Message) -> dict[str, Any]:
    thread = {"user_id": reply.user_id, "thread_id": reply.thread_id, "agent_id": reply.agent_id}
    opened = Escalation.objects.to_people().filter(opened_at__lte=reply.created_at, **thread)
    return {"person": reply.name, "escalation": opened.order_by("-opened_at").first()}


def with_sources(
    why: dict[str, Any],
    *,
    agent_id: UUID,
    user_id: str,
    thread_id: str = "",
    replied_at: datetime | None = None,
    excluded_ids: Iterable[UUID | None] = (),
) -> dict[str, Any]:
    """Add the sources to the result of `trace_context`.

    Args:
        why: of `trace_context`.
        agent_id: the agent that wrote the reply.
        user_id: the user of the reply.
        thread_id: its thread.
        replied_at: the time of the reply; None for one that was written just now.
        excluded_ids: messages that are no sources: the reply and its message.
    """
    agent = Agent.objects.filter(pk=agent_id).first()
    sections = {section["name"]: section["messages"] for section in why["sections"]}
    turns = sections.get("session", [])
    given_facts = [fact for fact in why.get("facts") or () if not fact.get("reason")]
    candidates = (
        _messages_before(replied_at, agent_id, user_id, thread_id, excluded_ids) if turns else []
    )
    ids = {as_uuid(hit["message_id"]) for hit in why["hits"]}
    ids |= {as_uuid(pk) for fact in given_facts for pk in fact.get("message_ids") or ()}
    changes = _Changes(ids | {message.pk for message in candidates}, given_facts, replied_at)
    for memory in (*why["hits"], *why["cut"]):
        memory |= {"user_id": user_id, "agent_name": agent.name if agent else ""}
    for hit in why["hits"]:
        hit |= changes.message_changes(hit["message_id"])
        if hit["content"] == ERASED_PART:
            hit["changes"] = [gettext("erased since")]
        hit["signals"] = score_shares(hit, agent)
    recalled = {hit["message_id"] for hit in why["hits"]}
    shown_turns = [turn for turn in _turns(turns, candidates) if turn["message_id"] not in recalled]
    for turn in shown_turns:
        turn |= changes.message_changes(turn["message_id"])
        turn["is_erased"] = not turn["message_id"] and ERASED_PART in turn["content"]
    return {
        **why,
        "agent": agent,
        "user_id": user_id,
        "facts_given": [{**fact, "changes": changes.fact_changes(fact)} for fact in given_facts],
        "facts_left_out": [fact for fact in why.get("facts") or () if fact.get("reason")],
        "left_out_count": sum(bool(fact.get("reason")) for fact in why.get("facts") or ()),
        "turns": shown_turns,
        "instructions": [
            {
                "title": gettext("Instructions of the application")
                if message["content"].startswith(INSTRUCTIONS_OPENING)
                else gettext("Agent instructions"),
                "content": message["content"],
            }
            for message in sections.get("system", [])
        ],
    }


def score_shares(hit: Mapping[str, Any], agent: Agent | None) -> list[dict[str, Any]]:
    """Return the shares of a memory's score in percent, the largest first.

    The remainder that the weights do not explain is the conversation's: its part depends on the
    length of all turns, which a trace does not have.
    """
    values = {feature["name"]: feature["value"] for feature in hit["features"]}
    try:
        weights = agent.recall_policy.weights if agent else RecallWeights()
    except InvalidArgument:
        weights = RecallWeights()
    parts = {
        "meaning": values.get("cosine", 0.0),
        "words": weights.lexical * values.get("lexical", 0.0),
        "names": 2 * weights.subject * max(0.0, values.get("subject", 0.0)),
        "time": weights.time * values.get("time", 0.0),
        "fact": weights.fact * values.get("fact", 0.0),
    }
    neighbour_sum = sum(values.get(name, 0.0) for name in ("session", "previous", "following"))
    if neighbour_sum > 0:
        parts["conversation"] = hit["score"] - sum(parts.values())
    parts = {name: part for name, part in parts.items() if part > 0}
    total = sum(parts.values())
    shares = {name: round(100 * part / total) for name, part in parts.items()}
    return [
        {"label": gettext(name), "help": SIGNALS[name], "percent": share}
        for name, share in sorted(shares.items(), key=lambda item: -item[1])
        if share
    ]


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
        self.messages = {
            message.pk: message
            for message in Message.objects.filter(pk__in=ids).defer("content", "metadata")
        }
        self.excluded = excluded_labels(ids)
        fact_ids = [pk for fact in facts if (pk := as_uuid(fact.get("memory_id")))]
        self.facts = {
            fact.pk: fact
            for fact in MemoryEntry.objects.entries().filter(pk__in=fact_ids).defer("embedding")
        }

    def message_changes(self, message_id: Any) -> dict[str, Any]:
        """Return the context of a source that is a message."""
        pk = as_uuid(str(message_id or ""))
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
        pk = as_uuid(fact.get("memory_id"))
        fact_now = self.facts.get(pk) if pk else None
        if fact_now is None:
            return [gettext("deleted or erased since")]
        if fact_now.state != FactState.ACTIVE:
            return [str(_STATES[FactState(fact_now.state)])]
        changes = []
        if fact_now.content != fact["content"]:
            changes.append(gettext("now: %(value)s") % {"value": fact_now.content[:300]})
        moment = timezone.now()
        if any(
            end is not None and end <= moment for end in (fact_now.valid_to, fact_now.expires_at)
        ):
            changes.append(gettext("ended since"))
        return changes


def _messages_before(
    replied_at: datetime | None,
    agent_id: UUID,
    user_id: str,
    thread_id: str,
    excluded_ids: Iterable[UUID | None],
) -> list[Any]:
    """The messages of the user or of the thread before a reply, the latest first.

    Each has `beginning`, the beginning of its text, and `agent_name`, the name of its agent.
    """
    rows = Message.objects.filter(created_at__lte=replied_at or timezone.now())
    agents = Agent.objects.filter(pk=OuterRef("agent_id")).values("name")[:1]
    rows = rows.exclude(pk__in=[pk for pk in excluded_ids if pk]).annotate(
        beginning=Left("content", MAX_TURN_CHARACTERS), agent_name=Subquery(agents)
    )
    of_agent = rows.filter(agent_id=agent_id, user_id=user_id)
    of_thread = rows.filter(user_id=user_id, thread_id=thread_id)
    order = ("-created_at", "-number")
    found = list(of_agent.defer("content").order_by(*order)[:MAX_TURNS])
    if thread_id:
        found += of_thread.defer("content").order_by(*order)[:MAX_TURNS]
    return list({message.pk: message for message in found}.values())


def _turns(turns: Sequence[Mapping[str, Any]], candidates: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the recent turns of a prompt, the latest first: as messages, or as the prompt's text.

    A turn of a prompt has several messages of one role, each after its date or its speaker.
    """
    rows: list[dict[str, Any]] = []
    remaining = list(candidates)
    for turn in reversed(turns):
        text = turn["content"]
        found = [
            message
            for message in remaining
            if message.role == turn["role"] and _contains_message(text, message.beginning)
        ]
        remaining = [message for message in remaining if message not in found]
        rows += [
            {
                "role": message.role,
                "content": message.beginning,
                "message_id": str(message.pk),
                "name": message.name,
                "user_id": message.user_id,
                "agent_name": message.agent_name,
                "created_at": message.created_at,
            }
            for message in found
        ] or [{"role": turn["role"], "content": text, "message_id": "", "name": ""}]
    return rows


def _contains_message(text: str, beginning: str) -> bool:
    """Whether a turn contains a message: its beginning, or all of a short one at a line's end."""
    beginning = beginning.strip()
    if len(beginning) < SHORT_CHARACTERS:
        return bool(beginning) and any(line.endswith(beginning) for line in text.splitlines())
    return beginning[:PROBE_CHARACTERS] in text
