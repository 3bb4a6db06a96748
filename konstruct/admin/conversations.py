"""Conversations: the threads of a tenant, each shown as a chat, with the sources of each reply."""

from typing import Any, Final
from uuid import UUID

from django.db.models import OuterRef, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext, gettext_lazy as _
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from konstruct.admin import pages
from konstruct.admin.access import PageList, log_row_access
from konstruct.admin.escalations import transfer_targets
from konstruct.admin.rows import VIEW_WINDOWS
from konstruct.admin.sources import exclusion_label, is_written_by_person, sources_of
from konstruct.channels.models import Delivery
from konstruct.orchestrator.handoff.escalations import Thread
from konstruct.orchestrator.identities.channel_identities import find_people
from konstruct.orchestrator.models import Agent, Escalation, HeldFor, PendingReply
from konstruct.orchestrator.replies import CLOSED
from konstruct.orchestrator.usage import last_calls
from konstruct.templatetags.texts import speaker
from memory.browse import lists
from memory.browse.lists import displayed_names
from memory.conf import HANDOVER_CHANNEL, IMPORT_CHANNEL, STORED_CHANNEL
from memory.conversations.window_store import get_thread_turns, shared_channels
from memory.models import Message
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action
from tenants.context import required_tenant_id
from tenants.models import job_columns

READ = "memory.view_message"
MAX_PREVIEW_CHARACTERS: Final = 100
HELD = {
    HeldFor.PERSON: _("held for a person"),
    HeldFor.CONSENT: _("held for consent"),
    HeldFor.PROGRAM: _("held for a program"),
}

# How a message came, that no channel brought.
COPIED = {
    IMPORT_CHANNEL: _("imported"),
    HANDOVER_CHANNEL: _("copy from another agent's thread"),
    STORED_CHANNEL: _("stored directly"),
}


class ConversationList(PageList):
    """Threads by their last messages."""

    list_name = "conversations"
    permission = READ
    list_display = (
        *("beginning", pages.column("title", _("Title")), "user_id", "agent", "thread_id"),
        pages.column("origin", _("Channel")),
        "created_at",
    )
    list_filter: Any = (pages.AgentFilter, pages.UserFilter)
    search_fields = ("user_id",)
    search_help_text = _("A person's id or name.")
    ordering = ("-created_at", "-number")
    paginator = InfinitePaginator

    def row_url(self, row: Any) -> str:
        return reverse("admin:conversation", args=[row.pk])

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: Any = super().get_queryset(request).defer("content", "metadata", "usage")
        user_id = request.GET.get("user", "").replace("\0", "")
        people: Any = {"agent_ids": pages.agent_names(), "user_ids": [user_id]} if user_id else {}
        return lists.last_of_threads(rows, **people).annotate(
            shown=Left("content", MAX_PREVIEW_CHARACTERS),
            title=lists.of_conversation("title"),
            origin=lists.channel_of_thread(),
        )

    def search(self, request: HttpRequest, rows: Any, query: str) -> Any:
        """Search by a person's id or name."""
        return rows.filter(user_id__in=find_people(query)[: pages.MAX_CHOICES])

    @display(description=_("Latest message"))
    def beginning(self, message: Any) -> str:
        """The speaker, and the beginning of the text."""
        return f"{speaker(message)}: {message.shown or gettext('(empty)')}"


ConversationList.serve(Message)
_MESSAGES = Message.objects.defer("content").annotate(
    origin=lists.channel_of_thread(), title=lists.of_conversation("title")
)


@tenant_site.page("conversations/<uuid:message_id>/", permission=READ, title=_("Conversation"))
def conversation(request: HttpRequest, message_id: UUID) -> dict[str, Any]:
    """Show a thread around a message, and beside it the sources of a reply."""
    anchor: Any = get_object_or_404(_MESSAGES, pk=message_id)
    log_row_access(request, Action.VIEW, anchor, "conversation")
    turns: list[Any] = [*lists.turns_around(anchor)]  # with annotations
    pending = PendingReply.objects.in_bulk([turn.pk for turn in turns])
    with_jobs = Delivery.objects.annotate(**job_columns("delivery", OuterRef("message_id")))
    deliveries = with_jobs.in_bulk([turn.pk for turn in turns])
    calls = {}
    if request.user.has_perm("orchestrator.view_modelcall"):
        calls = last_calls(
            turn for turn in turns if not turn.reply_pk and not is_written_by_person(turn)
        )
    for turn in turns:
        turn.pending, turn.delivery_row = pending.get(turn.pk), deliveries.get(turn.pk)
        turn.status = _status(turn, turn.pending)
        # The last call for the reply, or for the message without a reply.
        turn.call = calls.get(turn.pk)
        turn.has_sources = turn.has_trace or is_written_by_person(turn)
        turn.excluded = turn.has_excluded_words and exclusion_label(is_whole=turn.is_excluded)
        # By another agent, to which the thread was transferred.
        turn.is_guests = turn.answered_by_id not in (None, turn.agent_id)
    with_source_ids = [turn.pk for turn in turns if turn.has_sources]
    chosen = pages.as_uuid(request.GET.get("why")) or next(reversed(with_source_ids), None)
    reply = None
    if chosen and request.user.has_perm("memory.view_recallevent"):
        of_both = {"agent_id": anchor.agent_id, "user_id": anchor.user_id}
        reply = Message.objects.filter(pk=chosen, **of_both).first()
    earlier, later = lists.turns_beside(turns[0], turns[-1])
    agents = list(Agent.objects.only("pk", "name", "is_active"))
    names = {agent.pk: agent.name for agent in agents}
    thread = Thread.of(anchor).as_filter
    escalation = None
    if request.user.has_perm("orchestrator.view_escalation"):
        escalation = Escalation.objects.open().filter(**thread).first()
    may_escalate = escalation is None and request.user.has_perm("orchestrator.add_escalation")
    return {
        "anchor": anchor,
        "person": turns[-1].person_name,
        "channel": anchor.origin,
        "is_shared": anchor.channel in shared_channels(),
        "has_other_people": lists.has_other_people(anchor),
        "copies": [
            (turn.pk, names[turn.agent_id]) for turn in lists.conversations_beside(anchor, names)
        ],
        "agent": names.get(anchor.agent_id, str(anchor.agent_id)),
        "turns": turns,
        "earlier": earlier,
        "later": later,
        "why": reply and sources_of(reply),
        "call": calls.get(chosen) if chosen else None,
        "chosen": chosen,
        "escalation": escalation,
        "answers": escalation and escalation.to_agent_id and names.get(escalation.to_agent_id),
        "others": transfer_targets(agents, anchor.agent_id) if may_escalate else [],
        "is_fullwidth": 1,
    }


@tenant_site.page("conversations/<uuid:message_id>/thread/", permission=READ, title=_("Thread"))
def thread(request: HttpRequest, message_id: UUID) -> dict[str, Any]:
    """Show a thread around a message, with the turns of all people and agents in it.

    Of a channel in which several people speak it also shows the recent turns, as prompts have them.
    """
    anchor: Any = get_object_or_404(_MESSAGES, pk=message_id)
    turns: list[Any] = lists.turns_around(anchor, of_all=True)
    recent: list[Any] | None = None
    if anchor.channel in shared_channels() and request.user.has_perm(VIEW_WINDOWS):
        recent = get_thread_turns(required_tenant_id(), anchor.thread_id, anchor.channel)
    users = {*(turn.user_id for turn in turns), *(turn["user_id"] for turn in recent or ())}
    log_row_access(request, Action.VIEW, anchor, "conversation", people=users)
    names, people = pages.agent_names(), displayed_names(users)
    for turn in turns:
        turn.agent_name = names.get(turn.answered_by_id or turn.agent_id, "")
        turn.content, turn.at, turn.message_id = turn.shown, turn.created_at, turn.pk
    first, last = (turns[0], turns[-1]) if turns else (anchor, anchor)
    earlier, later = lists.turns_beside(first, last, of_all=True)
    return {
        "anchor": anchor,
        "channel": anchor.origin,
        "turns": turns,
        "recent": recent
        and [
            {
                **turn,
                "at": parse_datetime(turn.get("at", "")),
                "person_name": people.get(turn["user_id"], ""),
                "agent_name": names.get(pages.as_uuid(turn["answered_by"]), ""),
            }
            for turn in recent
        ],
        "earlier": earlier,
        "later": later,
    }


def _status(message: Any, pending: PendingReply | None) -> str:
    if pending is not None:
        if pending.held_for:
            return str(HELD[HeldFor(pending.held_for)])
        if pending.error_code == CLOSED:
            return gettext("closed")
        return "failed" if pending.failed_at else "waiting"
    if message.channel in COPIED:
        return str(COPIED[message.channel])
    if message.role == "user":
        return "answered" if message.reply_pk else gettext("not to be answered")
    return ""
