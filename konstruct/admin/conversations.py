"""Conversations, each shown as a chat with the sources of its replies, and search over all data."""

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from django.contrib import admin
from django.db.models import CharField, Model, OuterRef, QuerySet, Value, functions
from django.db.models.fields import UUIDField
from django.http import HttpRequest
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext, gettext_lazy as _
from unfold.dataclasses import SearchResult
from unfold.paginator import InfinitePaginator

from konstruct.admin import access, escalations, pages
from konstruct.admin.people import VIEW as VIEW_PEOPLE, VIEW_ACCOUNTS
from konstruct.admin.rows import VIEW_WINDOWS, find_sessions
from konstruct.admin.sources import exclusion_label, is_written_by_person, sources_of
from konstruct.channels.models import Delivery
from konstruct.orchestrator import replies, usage
from konstruct.orchestrator.handoff.escalations import Thread
from konstruct.orchestrator.identities.channel_identities import find_people, users_of_accounts
from konstruct.orchestrator.models import Agent, Escalation, HeldFor, PendingReply
from konstruct.templatetags.texts import speaker
from memory.browse import lists
from memory.browse.lists import displayed_names, people, with_text
from memory.browse.search import MessageFilter, MessageSearchResult, search_messages
from memory.conf import HANDOVER_CHANNEL, IMPORT_CHANNEL, SEARCH_FLOOR, STORED_CHANNEL
from memory.conversations.window_store import get_thread_turns, shared_channels
from memory.embedding.embedder import embed
from memory.facts import LongTermMemory
from memory.models import Message
from tenants.admin.sites import Content, tenant_site
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


class ConversationList(access.PageList):
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
            shown=functions.Left("content", MAX_PREVIEW_CHARACTERS),
            title=lists.of_conversation("title"),
            origin=lists.channel_of_thread(),
        )

    def search(self, request: HttpRequest, rows: Any, query: str) -> Any:
        """Search by a person's id or name."""
        return rows.filter(user_id__in=find_people(query)[: pages.MAX_CHOICES])

    @admin.display(description=_("Latest message"))
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
    access.log_row_access(request, Action.VIEW, anchor, "conversation")
    turns: list[Any] = [*lists.turns_around(anchor)]  # with annotations
    pending = PendingReply.objects.in_bulk([turn.pk for turn in turns])
    with_jobs = Delivery.objects.annotate(**job_columns("delivery", OuterRef("message_id")))
    deliveries = with_jobs.in_bulk([turn.pk for turn in turns])
    calls = {}
    if request.user.has_perm("orchestrator.view_modelcall"):
        calls = usage.last_calls(
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
        "others": escalations.transfer_targets(agents, anchor.agent_id) if may_escalate else [],
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
    access.log_row_access(request, Action.VIEW, anchor, "conversation", people=users)
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
        if pending.error_code == replies.CLOSED:
            return gettext("closed")
        return "failed" if pending.failed_at else "waiting"
    if message.channel in COPIED:
        return str(COPIED[message.channel])
    if message.role == "user":
        return "answered" if message.reply_pk else gettext("not to be answered")
    return ""


SEARCH = "audit.search_everyone"
MAX_QUERY_CHARACTERS: Final = 1_000
# Of people, agents, facts and conversations the best; of messages a page.
MAX_RESULTS: Final = 8
MAX_MESSAGES: Final = 30
# Pages of rows that are shown to people in another way than as a form.
PAGES: Final[dict[type[Model], str]] = {
    Message: "admin:conversation",
    Escalation: "admin:escalation",
}


class FilterForm(pages.PageForm):
    """The filters of a search."""

    agent = pages.AgentField(_("All agents"))
    user = pages.UserField(is_known=True, label=_("Person"))
    user.widget.attrs["placeholder"] = _("Id or name")


@tenant_site.page("search/", permission=SEARCH, title=_("Search"))
def search_page(request: HttpRequest) -> Content:
    """Find objects of the tenant; an id redirects to its object."""
    query = query_of(request, "q")
    form = FilterForm(request.GET)
    form.full_clean()
    message_filter = MessageFilter(
        agent_id=form.cleaned_data.get("agent"), user_id=form.cleaned_data.get("user")
    )
    exact = next(exact_links(request, query), None) if query else None
    # An unknown person must not widen the search to all people.
    is_searched = query and exact is None and "user" not in form.errors
    found = _results(request, query, message_filter) if is_searched else {}
    access.log_access(
        request,
        Action.SEARCH if query else Action.LIST,
        "everything",
        agent_id=message_filter.agent_id,
        user_id=message_filter.user_id,
        people=found.pop("shown", ()),
    )
    if exact is not None:
        return redirect(exact.link)
    return {
        "q": query,
        "form": form,
        "floor": SEARCH_FLOOR,
        **found,
    }


def _results(request: HttpRequest, query: str, message_filter: MessageFilter) -> dict[str, Any]:
    """Return the results of each kind that the person may see, and the users that they show."""
    vector = embed([query], is_query=True)[0]
    facts = []
    if request.user.has_perm("memory.view_memoryentry"):
        facts = LongTermMemory().search(
            required_tenant_id(),
            query,
            MAX_RESULTS,
            message_filter.agent_id,
            user_id=message_filter.user_id,
            shared=message_filter.user_id is None,
            threshold=SEARCH_FLOOR,
            query_embedding=vector,
        )
    messages = MessageSearchResult([], is_partial=False)
    if request.user.has_perm(READ):
        messages = search_messages(
            query, message_filter=message_filter, limit=MAX_MESSAGES, query_embedding=vector
        )
    names, named = pages.agent_names(), list(named_links(request, query))
    rows: list[Any] = [*facts, *(hit.message for hit in messages.hits)]
    users = {row.user_id for row in rows}
    people_names = displayed_names(users)
    for row in rows:
        row.person_name = people_names.get(row.user_id, "")
    return {
        "named": [result for result, _ in named],
        "facts": [
            (fact, names.get(fact.agent_id, "") if fact.agent_id else gettext("all agents"))
            for fact in facts
        ],
        "messages_found": [
            (match, names.get(match.message.agent_id, str(match.message.agent_id)))
            for match in messages.hits
        ],
        "is_partial": messages.is_partial,
        "is_empty": not (named or facts or messages.hits),
        "shown": {*(user_id for _, user_id in named), *users} - {None, ""},
    }


def query_of(request: HttpRequest, parameter: str) -> str:
    """Return the beginning of a query parameter, without NUL characters."""
    return request.GET.get(parameter, "").replace("\0", "")[:MAX_QUERY_CHARACTERS].strip()


def exact_links(request: HttpRequest, query: str) -> Iterator[SearchResult]:
    """Yield the rows with an id, of all tables that the person may view, in one query."""
    row_id = pages.as_uuid(query)
    if row_id is None:
        return
    admins: dict[str, admin.ModelAdmin[Any]] = {
        model._meta.label: model_admin
        for model, model_admin in tenant_site._registry.items()
        if isinstance(model._meta.pk, UUIDField) and model_admin.has_view_permission(request)
    }
    kinds: list[QuerySet[Any]] = [
        model_admin.model._default_manager.filter(pk=row_id)
        .order_by()
        .values_list(Value(label, output_field=CharField()))
        for label, model_admin in admins.items()
    ]
    if not kinds:
        return
    first, *others = kinds
    for (label,) in first.union(*others, all=True):
        model = admins[label].model
        link = reverse(PAGES.get(model, pages.model_page(model, "change")), args=[row_id])
        yield SearchResult(str(row_id), str(model._meta.verbose_name), link, "tag")


def named_links(request: HttpRequest, query: str) -> Iterator[tuple[SearchResult, str]]:
    """Yield people, agents, conversations and sessions by their name or id, each with its user."""
    if pages.as_user_id(query) and request.user.has_perm(VIEW_PEOPLE):
        accounts = users_of_accounts(query) if request.user.has_perm(VIEW_ACCOUNTS) else []
        for person in people().filter(with_text(query, also_ids=accounts))[:MAX_RESULTS]:
            link = reverse("admin:person", query={"user": person.user_id})
            title = f"{person.name} ({person.user_id})" if person.name else person.user_id
            yield SearchResult(title[:120], gettext("Person"), link, "person"), person.user_id
    if request.user.has_perm("orchestrator.view_agent"):
        for agent in Agent.objects.filter(name__icontains=query).order_by("name")[:MAX_RESULTS]:
            link = reverse("admin:orchestrator_agent_change", args=[agent.pk])
            yield SearchResult(agent.name, gettext("Agent"), link, "smart_toy"), ""
    if request.user.has_perm(READ):
        threads = Message.objects.filter(thread_id=query).last_of_threads().order_by("-number")
        for message in threads[:MAX_RESULTS]:
            link = reverse("admin:conversation", args=[message.pk])
            title = f"{message.thread_id[:60]} ({message.user_id[:40]})"
            yield SearchResult(title, gettext("Conversation"), link, "forum"), message.user_id
        for session in find_sessions(query):
            link = reverse("admin:session", query={"thread": session.thread_id})
            title = session.thread_id[:120]
            yield SearchResult(title, gettext("Session"), link, "account_tree"), ""


def palette(request: HttpRequest, _: str) -> list[SearchResult]:
    """Return results of Ctrl+K besides the lists: what has the name or the id."""
    query = query_of(request, "s")
    if getattr(request, "tenant", None) is None:
        return []
    named = list(named_links(request, query))
    shown = {user_id for _, user_id in named} - {""}
    access.log_access(request, Action.SEARCH, "everything", people=shown)
    results = list(exact_links(request, query))
    if request.user.has_perm(SEARCH):
        link = reverse("admin:search_page", query={"q": query})
        results.append(SearchResult(query, gettext("Search facts and messages"), link, "search"))
    return [*results, *(result for result, _ in named)]
