"""The search over all data of a tenant: the page, and the results of Ctrl+K."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, time, timedelta
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib.admin import ModelAdmin
from django.db.models import CharField, Model, QuerySet, Value
from django.db.models.fields import UUIDField
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.timezone import make_aware
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.dataclasses import SearchResult

from konstruct.admin.access import log_access
from konstruct.admin.lists import agent_choices, agent_names, model_page
from konstruct.admin.memory.conversations import READ
from konstruct.admin.memory.marking import highlight
from konstruct.admin.memory.sessions import find_sessions
from konstruct.admin.pages import PageForm, UserField, as_user_id, as_uuid
from konstruct.admin.people.identities import VIEW as VIEW_ACCOUNTS
from konstruct.admin.people.users import VIEW as VIEW_PEOPLE
from konstruct.orchestrator.identities.channel_identities import is_known, users_of_accounts
from konstruct.orchestrator.models import Agent, Escalation
from memory.browse.people import people, with_text
from memory.browse.search import MessageFilter, MessageSearchResult, search_messages
from memory.conf import SEARCH_FLOOR
from memory.embedding.embedder import embed
from memory.facts import LongTermMemory
from memory.models import Message
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action, ErasureRequest
from tenants.context import required_tenant_id
from tenants.models import Tenant

SEARCH = "audit.search_everyone"
VIEW_FACTS = "memory.view_memoryentry"
VIEW_AGENTS = "orchestrator.view_agent"
VIEW_ERASURES = "audit.view_erasurerequest"
MAX_QUERY_CHARACTERS: Final = 1_000
# Of people, agents, facts and conversations the best; of messages a page.
MAX_RESULTS: Final = 8
MAX_MESSAGES: Final = 30
# Pages of rows that are shown to people in another way than as a form.
PAGES: Final[dict[type[Model], str]] = {
    Message: "admin:conversation",
    Escalation: "admin:escalation",
}


DATE: Final = forms.DateInput(attrs={"type": "date"})


class FilterForm(PageForm):
    """The filters of a search."""

    agent = forms.ChoiceField(
        label=_("Agent"), choices=agent_choices(_("All agents")), required=False
    )
    user = UserField(is_known=True, label=_("Person"))
    user.widget.attrs |= {"class": "k-input", "placeholder": _("Id or name")}
    channel = forms.CharField(label=_("Channel"), required=False)
    since = forms.DateField(label=_("From"), required=False, widget=DATE)
    until = forms.DateField(label=_("To"), required=False, widget=DATE)

    def message_filter(self) -> MessageFilter:
        """Return the valid values as a filter; both dates are included."""
        self.full_clean()
        values = self.cleaned_data
        return MessageFilter(
            agent_id=as_uuid(values.get("agent")),
            user_id=values.get("user"),
            channel=values.get("channel") or None,
            since=_start(values.get("since")),
            until=_start(values.get("until"), timedelta(days=1)),
        )


def _start(day: Any, offset: timedelta = timedelta()) -> datetime | None:
    try:
        return make_aware(datetime.combine(day, time()) + offset) if day else None
    except OverflowError:
        return None


@tenant_site.page("search/", name="search_page", permission=SEARCH)
def search_page(request: HttpRequest) -> HttpResponseBase:
    """Find objects of the tenant; an id redirects to its object."""
    query = query_of(request, "q")
    form = FilterForm(request.GET)
    message_filter = form.message_filter()
    exact = next(exact_links(request, query), None) if query else None
    # An unknown person must not widen the search to all people.
    is_searched = query and exact is None and "user" not in form.errors
    found = _results(request, query, message_filter) if is_searched else {"messages_found": []}
    log_access(
        request,
        Action.SEARCH if query else Action.LIST,
        "everything",
        agent_id=message_filter.agent_id,
        user_id=message_filter.user_id,
        people=_people_in(found),
    )
    if exact is not None:
        return redirect(exact.link)
    return tenant_site.render(
        request,
        "konstruct/search.html",
        title=gettext("Search"),
        q=query,
        form=form,
        floor=SEARCH_FLOOR,
        **found,
    )


def _people_in(found: Mapping[str, Any]) -> set[str]:
    """Return the users of the results that a page shows."""
    rows = [
        *(person for person, _ in found.get("people", ())),
        *(match.message for match, *_ in found["messages_found"]),
        *(fact for fact, _ in found.get("facts", ())),
        *found.get("threads", ()),
    ]
    return {row.user_id for row in rows if row.user_id}


def _results(request: HttpRequest, query: str, message_filter: MessageFilter) -> dict[str, Any]:
    """Return the results of each kind that the person may see."""
    names, vector = agent_names(), embed([query], is_query=True)[0]
    facts = []
    if request.user.has_perm(VIEW_FACTS):
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
    persons = search_people(request, query, MAX_RESULTS)
    agents = list(search_agents(request, query))
    threads = list(_threads(request, query))
    sessions = list(_search_sessions(request, query))
    return {
        "people": [(match, urlencode({"user": match.user_id})) for match in persons],
        "agents": agents,
        "threads": threads,
        "sessions": sessions,
        "facts": [
            (fact, names.get(fact.agent_id, "") if fact.agent_id else gettext("all agents"))
            for fact in facts
        ],
        "messages_found": [
            (
                match,
                names.get(match.message.agent_id, str(match.message.agent_id)),
                highlight(match.message.content, query),
            )
            for match in messages.hits
        ],
        "is_partial": messages.is_partial,
        "is_empty": not (persons or agents or threads or sessions or facts or messages.hits),
    }


def query_of(request: HttpRequest, parameter: str) -> str:
    """Return a query parameter of at most `MAX_QUERY_CHARACTERS`, without NUL characters."""
    return request.GET.get(parameter, "").replace("\0", "")[:MAX_QUERY_CHARACTERS].strip()


def exact_links(request: HttpRequest, query: str) -> Iterator[SearchResult]:
    """Yield the object that has an id, and the receipt of an erased id."""
    if row_id := as_uuid(query):
        yield from _rows_with_id(request, row_id)
    if request.user.has_perm(VIEW_ERASURES) and as_user_id(query):
        receipt = ErasureRequest.objects.about(query).filter(done_at__isnull=False).first()
        if receipt is not None and not is_known([query]):
            link = reverse("admin:audit_erasurerequest_change", args=[receipt.pk])
            yield SearchResult(query, gettext("Erased: the receipt"), link, "person_off")


def _rows_with_id(request: HttpRequest, row_id: UUID) -> Iterator[SearchResult]:
    """Yield the rows with an id, of all tables that the person may view, in one query."""
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
        link = reverse(PAGES.get(model, model_page(model, "change")), args=[row_id])
        yield SearchResult(str(row_id), str(model._meta.verbose_name), link, "tag")


def search_people(request: HttpRequest, query: str, limit: int) -> list[Any]:
    """Return people by their names, ids and linked accounts."""
    if not (as_user_id(query) and request.user.has_perm(VIEW_PEOPLE)):
        return []
    accounts = users_of_accounts(query) if request.user.has_perm(VIEW_ACCOUNTS) else []
    return list(people().filter(with_text(query, also_ids=accounts))[:limit])


def search_agents(request: HttpRequest, query: str) -> Iterable[Agent]:
    """Return agents by their names."""
    if not request.user.has_perm(VIEW_AGENTS):
        return []
    return Agent.objects.filter(name__icontains=query).order_by("name")[:MAX_RESULTS]


def _threads(request: HttpRequest, query: str) -> Iterable[Message]:
    """Return the last message of each conversation with this id as its thread."""
    if not request.user.has_perm(READ):
        return []
    return (
        Message.objects.filter(thread_id=query).last_of_threads().order_by("-number")[:MAX_RESULTS]
    )


def _search_sessions(request: HttpRequest, query: str) -> Iterator[SearchResult]:
    """Yield the session of a graph with this id as its thread."""
    if request.user.has_perm(READ):
        for session in find_sessions(query):
            link = reverse("admin:session", query={"thread": session.thread_id})
            yield SearchResult(session.thread_id[:120], gettext("Session"), link, "account_tree")


def palette(request: HttpRequest, _: str) -> list[SearchResult]:
    """Return results of Ctrl+K besides the lists: ids, people and agents, or tenants."""
    query = query_of(request, "s")
    if getattr(request, "tenant", None) is None:
        return list(_search_tenants(request, query))
    persons = search_people(request, query, MAX_RESULTS)
    shown = [person.user_id for person in persons]
    log_access(request, Action.SEARCH, "everything", people=shown)
    results = [*exact_links(request, query), *_search_sessions(request, query)]
    if request.user.has_perm(SEARCH):
        link = reverse("admin:search_page", query={"q": query})
        results.append(SearchResult(query, gettext("Search facts and messages"), link, "search"))
    for person in persons:
        link = reverse("admin:person", query={"user": person.user_id})
        title = f"{person.name} ({person.user_id})" if person.name else person.user_id
        results.append(SearchResult(title[:120], gettext("Person"), link, "person"))
    for agent in search_agents(request, query):
        link = reverse("admin:orchestrator_agent_change", args=[agent.pk])
        results.append(SearchResult(agent.name, gettext("Agent"), link, "smart_toy"))
    return results


def _search_tenants(request: HttpRequest, query: str) -> Iterator[SearchResult]:
    if not request.user.has_perm("tenants.view_tenant"):
        return
    tenants_by_name = Tenant.objects.filter(name__icontains=query)
    tenants = tenants_by_name | Tenant.objects.filter(slug__icontains=query)
    if row_id := as_uuid(query):
        tenants |= Tenant.objects.filter(pk=row_id)
    for tenant in tenants.order_by("name")[:MAX_RESULTS]:
        link = reverse("admin:tenants_tenant_change", args=[tenant.pk])
        yield SearchResult(tenant.name, gettext("Tenant"), link, "domain")
