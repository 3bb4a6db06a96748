"""Conversations: the threads of a tenant, each shown as a chat, with the sources of each reply."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import OuterRef
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from konstruct.admin.access import (
    date_range_query,
    export_page,
    log_access,
    log_row_access,
    with_date_range,
)
from konstruct.admin.lists import agent_names
from konstruct.admin.memory.exclusions import exclusion_label
from konstruct.admin.memory.sources import is_written_by_person, sources_of
from konstruct.admin.operations.escalations import transfer_targets
from konstruct.admin.pages import (
    PersonChoice,
    agent_user_query,
    as_number,
    as_position,
    as_uuid,
    position_text,
    show_outcome,
)
from konstruct.channels.models import Delivery
from konstruct.orchestrator.handoff.escalations import Thread
from konstruct.orchestrator.metering import last_calls
from konstruct.orchestrator.models import (
    Agent,
    Escalation,
    ExtractionCursor,
    HeldFor,
    ModelCall,
    PendingReply,
)
from konstruct.orchestrator.pipeline.accept import retry_reply
from konstruct.orchestrator.replies import CLOSED
from memory.browse.people import displayed_names
from memory.browse.threads import (
    ThreadPage,
    ThreadPosition,
    ThreadSummary,
    channel_of,
    conversations_beside,
    has_other_people,
    latest_threads,
    turns_around,
    turns_beside,
)
from memory.conf import HANDOVER_CHANNEL, IMPORT_CHANNEL, STORED_CHANNEL
from memory.conversations.thread_window import shared_channels
from memory.models import Message
from tenants import transaction
from tenants.admin.list_tools import BATCH_ROWS, date_range, list_tools
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action
from tenants.context import required_tenant_id
from tenants.models import job_columns

RETRY = "orchestrator.change_pendingreply"
READ = "memory.view_message"
ONE_MICROSECOND: Final = timedelta(microseconds=1)
HELD = {
    HeldFor.PERSON: _("held for a person"),
    HeldFor.CONSENT: _("held for consent"),
    HeldFor.PROGRAM: _("held for a program"),
}


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A message in the chat, with its state."""

    message: Any
    status: str
    pending: PendingReply | None
    delivery: Delivery | None
    call: ModelCall | None
    """The last call of the language model for the reply, or for the message without a reply."""
    is_chosen: bool

    @property
    def is_abridged(self) -> bool:
        """Whether there is more of it than is shown."""
        return bool(self.message.length > len(self.message.shown))

    @property
    def has_sources(self) -> bool:
        """Whether the sources of the reply are known."""
        return _has_sources(self.message)

    @property
    def excluded(self) -> str:
        """Whether recall leaves it or words of it out, in words."""
        is_excluded = self.message.has_excluded_words
        return exclusion_label(is_whole=self.message.is_excluded) if is_excluded else ""

    @property
    def is_guests(self) -> bool:
        """Whether another agent wrote it, to which the thread was transferred."""
        return self.message.answered_by_id not in (None, self.message.agent_id)


@tenant_site.page("conversations/", name="conversations", permission=READ)
def conversation_list(request: HttpRequest) -> HttpResponseBase:
    """Threads by their latest turn."""
    names = agent_names()
    agent_id = as_uuid(request.GET.get("agent"))
    person = PersonChoice.of_request(request)
    user_id = person.user_id or None
    until, _ = as_position(request.GET.get("until")) or (None, "")
    page = _threads(request, names, person, before=_position(request), until=until)
    if page.before and not page.threads:
        # All messages that were read are of conversations on newer pages, and reading is bounded:
        # the list begins anew with the messages before these.
        until = page.before.created_at + ONE_MICROSECOND
        page = _threads(request, names, person, before=None, until=until)
    log_access(
        request,
        Action.LIST,
        "conversations",
        agent_id=agent_id,
        user_id=user_id,
        people=[row.user_id for row in page.threads],
    )
    place = {"until": until.isoformat()} if until else {}
    return tenant_site.render(
        request,
        "konstruct/conversations.html",
        title=gettext("Conversations"),
        rows=_rows(page.threads, names),
        agents=names.items(),
        agent_id=agent_id,
        user_id=person.typed,
        person=person,
        is_first=not (until or request.GET.get("before")),
        until=until,
        older=with_date_range(
            request,
            agent_user_query(agent_id, user_id, before=position_text(*page.before), **place),
        )
        if page.before
        else "",
        newest=with_date_range(request, agent_user_query(agent_id, user_id)),
        days=date_range_query(request),
        list_tools=list_tools(
            request,
            paging=["before", "until"],
            left_out=[gettext("Messages other than the latest, and its text after 200 characters")],
        ),
    )


def _position(request: HttpRequest) -> ThreadPosition | None:
    """Return the position of the parameter `before`, or None for another text."""
    at, key = as_position(request.GET.get("before")) or (None, None)
    number = as_number(key)
    return None if at is None or number is None else ThreadPosition(at, number)


def _threads(
    request: HttpRequest,
    names: dict[UUID, str],
    person: PersonChoice,
    *,
    before: ThreadPosition | None,
    until: datetime | None = None,
    limit: int = 25,
) -> ThreadPage:
    """Return a page of the threads that the parameters ask for, of messages before `until`."""
    if person.problem:
        return ThreadPage([], None)
    agent_id, user_id = as_uuid(request.GET.get("agent")), person.user_id
    since, last = date_range(request.GET)
    return latest_threads(
        before=before,
        agent_ids=[agent_id] if agent_id else list(names) if user_id else None,
        user_ids=[user_id] if user_id else None,
        since=since,
        until=min(filter(None, (until, last)), default=None),
        limit=limit,
    )


def _export_rows(request: HttpRequest) -> Iterator[tuple[Any, ...]]:
    """Yield the threads by the time of their last messages, newest first."""
    names, person, before = agent_names(), PersonChoice.of_request(request), None
    # Ends: each page begins where the one before ended, and the last has no end.
    while True:
        page = _threads(request, names, person, before=before, limit=BATCH_ROWS)
        for row in _rows(page.threads, names):
            of_thread = (getattr(row["thread"], name) for name in EXPORT_COLUMNS)
            yield (
                row["agent"],
                row["person"],
                *of_thread,
                *(row.get(state, 0) for state in REPLY_STATES),
            )
        if page.before is None:
            return
        before = page.before


EXPORT_COLUMNS: Final = (
    *("agent_id", "user_id", "thread_id", "channel", "message_id", "role", "name", "beginning"),
    "created_at",
)
REPLY_STATES: Final = ("failed", "waiting", "held")
export_page(
    "conversations",
    permission=READ,
    columns=["agent", "person_name", *EXPORT_COLUMNS, *REPLY_STATES],
    rows=_export_rows,
)


@tenant_site.page("conversations/<uuid:message_id>/", name="conversation", permission=READ)
def conversation(request: HttpRequest, message_id: UUID) -> HttpResponseBase:
    """Show a thread around a message, and beside it the sources of a reply."""
    anchor = get_object_or_404(Message.objects.defer("content"), pk=message_id)
    log_row_access(request, Action.VIEW, anchor, "conversation")
    turns: list[Any] = [*turns_around(anchor)]  # with annotations
    pending = PendingReply.objects.in_bulk([turn.pk for turn in turns])
    with_jobs = Delivery.objects.annotate(**job_columns("delivery", OuterRef("message_id")))
    deliveries = with_jobs.in_bulk([turn.pk for turn in turns])
    calls = {}
    if request.user.has_perm("orchestrator.view_modelcall"):
        calls = last_calls(
            turn for turn in turns if not turn.reply_pk and not is_written_by_person(turn)
        )
    with_source_ids = [turn.pk for turn in turns if _has_sources(turn)]
    chosen = as_uuid(request.GET.get("why")) or next(reversed(with_source_ids), None)
    earlier, later = turns_beside(turns[0], turns[-1])
    agents = list(Agent.objects.only("pk", "name", "is_active"))
    names = {agent.pk: agent.name for agent in agents}
    thread = Thread.of(anchor).as_filter
    escalation = extraction = None
    if request.user.has_perm("orchestrator.view_escalation"):
        escalation = Escalation.objects.open().filter(**thread).first()
    if request.user.has_perm("orchestrator.view_extractioncursor"):
        extraction = ExtractionCursor.objects.with_jobs().filter(**thread).first()
    may_escalate = escalation is None and request.user.has_perm("orchestrator.add_escalation")
    return tenant_site.render(
        request,
        "konstruct/conversation.html",
        title=gettext("Conversation"),
        anchor=anchor,
        person=turns[-1].person_name,
        channel=channel_of(anchor),
        is_shared=anchor.channel in shared_channels(),
        has_other_people=has_other_people(anchor),
        copies=[(turn.pk, names[turn.agent_id]) for turn in conversations_beside(anchor, names)],
        agent=names.get(anchor.agent_id, str(anchor.agent_id)),
        turns=[
            MessageRow(
                message,
                _status(message, pending.get(message.pk)),
                pending.get(message.pk),
                deliveries.get(message.pk),
                calls.get(message.pk),
                message.pk == chosen,
            )
            for message in turns
        ],
        earlier=earlier,
        later=later,
        why=_why(request, chosen, anchor),
        call=calls.get(chosen) if chosen else None,
        chosen=chosen,
        extraction=extraction,
        escalation=escalation,
        answers=escalation and escalation.to_agent_id and names.get(escalation.to_agent_id),
        others=transfer_targets(agents, anchor.agent_id) if may_escalate else [],
        query=agent_user_query(anchor.agent_id, anchor.user_id),
        is_fullwidth=1,
    )


@tenant_site.page("conversations/<uuid:message_id>/thread/", name="thread", permission=READ)
def thread(request: HttpRequest, message_id: UUID) -> HttpResponseBase:
    """Show a thread around a message, with the turns of all people and agents in it."""
    anchor = get_object_or_404(Message.objects.defer("content"), pk=message_id)
    turns = turns_around(anchor, of_all=True)
    shown = [turn.user_id for turn in turns]
    log_row_access(request, Action.VIEW, anchor, "conversation", people=shown)
    names = agent_names()
    first, last = (turns[0], turns[-1]) if turns else (anchor, anchor)
    earlier, later = turns_beside(first, last, of_all=True)
    return tenant_site.render(
        request,
        "konstruct/thread.html",
        title=gettext("Thread"),
        anchor=anchor,
        channel=channel_of(anchor),
        turns=[
            {
                **{
                    name: getattr(turn, name) for name in ("role", "name", "person_name", "user_id")
                },
                "agent_name": names.get(turn.answered_by_id or turn.agent_id, ""),
                "content": turn.shown,  # type: ignore[attr-defined]
                "at": turn.created_at,
                "message_id": turn.pk,
            }
            for turn in turns
        ],
        earlier=earlier,
        later=later,
    )


@tenant_site.post_page(
    "conversations/<uuid:message_id>/retry/", name="retry_reply", permission=RETRY
)
def retry(request: HttpRequest, message_id: UUID) -> HttpResponseBase:
    """Retry a reply that has failed."""
    message = get_object_or_404(Message.objects.defer("content"), pk=message_id)
    success = gettext("The message will be answered in a moment.")
    with show_outcome(request, success), transaction.atomic():
        retry_reply(message_id, tenant_id=required_tenant_id())
        log_row_access(request, Action.RETRY, message, "reply")
    return redirect("admin:conversation", message_id)


def _rows(threads: list[ThreadSummary], names: dict[UUID, str]) -> list[dict[str, Any]]:
    """The threads with the names of agents and people, and the numbers of their pending replies."""
    unanswered = (
        PendingReply.objects.filter(
            message__agent_id__in={thread.agent_id for thread in threads},
            message__user_id__in={thread.user_id for thread in threads},
        )
        .exclude(error_code=CLOSED)
        .values_list(
            "message__agent_id", "message__user_id", "message__thread_id", "failed_at", "held_for"
        )
    )
    people = displayed_names(thread.user_id for thread in threads)
    counts: dict[Any, Counter[str]] = defaultdict(Counter)
    for *thread, failed_at, held_for in unanswered[:10_000]:
        state = "held" if held_for else "failed" if failed_at else "waiting"
        counts[tuple(thread)][state] += 1
    return [
        {
            "thread": thread,
            "agent": names.get(thread.agent_id, str(thread.agent_id)),
            "person": people.get(thread.user_id, ""),
            **counts[thread.agent_id, thread.user_id, thread.thread_id],
        }
        for thread in threads
    ]


def _status(message: Any, pending: PendingReply | None) -> str:
    if pending is not None:
        if pending.held_for:
            return str(HELD[HeldFor(pending.held_for)])
        if pending.error_code == CLOSED:
            return gettext("closed")
        return "failed" if pending.failed_at else "waiting"
    if message.channel == IMPORT_CHANNEL:
        return gettext("imported")
    if message.channel == HANDOVER_CHANNEL:
        return gettext("copy from another agent's thread")
    if message.channel == STORED_CHANNEL:
        return gettext("stored directly")
    if message.role == "user":
        return "answered" if message.reply_pk else gettext("not to be answered")
    return ""


def _has_sources(turn: Any) -> bool:
    return bool(turn.has_trace) or is_written_by_person(turn)


def _why(request: HttpRequest, chosen: UUID | None, anchor: Message) -> Any:
    """Return the sources of the chosen reply, for users who may see recall events."""
    if chosen is None or not request.user.has_perm("memory.view_recallevent"):
        return None
    reply = Message.objects.filter(
        pk=chosen, agent_id=anchor.agent_id, user_id=anchor.user_id
    ).first()
    return None if reply is None else sources_of(reply)
