"""Search over all data of a tenant, by a page and by Ctrl+K."""

from collections.abc import Iterator
from typing import Any, Final

from django.contrib.admin import ModelAdmin
from django.db.models import CharField, Model, QuerySet, Value
from django.db.models.fields import UUIDField
from django.http import HttpRequest
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy as _
from unfold.dataclasses import SearchResult

from konstruct.admin import pages
from konstruct.admin.access import log_access
from konstruct.admin.conversations import READ
from konstruct.admin.people import VIEW as VIEW_PEOPLE, VIEW_ACCOUNTS
from konstruct.admin.rows import find_sessions
from konstruct.orchestrator.identities.channel_identities import users_of_accounts
from konstruct.orchestrator.models import Agent, Escalation
from memory.browse.lists import displayed_names, people, with_text
from memory.browse.search import MessageFilter, MessageSearchResult, search_messages
from memory.conf import SEARCH_FLOOR
from memory.embedding.embedder import embed
from memory.facts import LongTermMemory
from memory.models import Message
from tenants.admin.sites import Content, tenant_site
from tenants.audit.models import Action
from tenants.context import required_tenant_id

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
    log_access(
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
    admins: dict[str, ModelAdmin[Any]] = {
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
    log_access(request, Action.SEARCH, "everything", people=shown)
    results = list(exact_links(request, query))
    if request.user.has_perm(SEARCH):
        link = reverse("admin:search_page", query={"q": query})
        results.append(SearchResult(query, gettext("Search facts and messages"), link, "search"))
    return [*results, *(result for result, _ in named)]
