"""The sidebars of both admin sites, and Records: the page that leads to all tables of a tenant."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from konstruct.admin.access import log_access
from konstruct.admin.waiting import badge, list_url, permission_of, waiting_counts
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action

# Title, icon, and the model of a list, which needs its view permission, or the name of a page.
TENANT_MENU = (
    (
        _("Work"),
        (
            (_("Today"), "today", "index"),
            (_("Conversations"), "forum", "conversations"),
            (_("People"), "group", "people"),
            (_("Facts to review"), "rule", "fact_review"),
            (_("Escalations"), "support_agent", "orchestrator.escalation"),
            (_("Agents"), "smart_toy", "orchestrator.agent"),
            (_("Search"), "search", "search_page"),
        ),
    ),
    ("", ((_("Records"), "database", "records"),)),
    (
        _("Settings"),
        (
            (_("Team"), "badge", "auth.user"),
            (_("Roles"), "admin_panel_settings", "auth.group"),
            (_("API keys"), "key", "api.apikey"),
            (_("Retention"), "auto_delete", "audit.retentionrule"),
            (_("Notifications"), "notifications", "orchestrator.notificationrecipient"),
            (_("Slack"), "tag", "channels.slackinstallation"),
        ),
    ),
)
OPERATORS_MENU = (
    (
        "",
        (
            (_("Tenants"), "domain", "tenants.tenant"),
            (_("Usage"), "bar_chart", "usage"),
            (_("Processes"), "memory", "processes"),
            (_("Operators"), "badge", "auth.user"),
            (_("Groups"), "admin_panel_settings", "auth.group"),
            (_("Log"), "history", "tenants.operatorevent"),
        ),
    ),
)
# Title, explanation, and the model of a list or the name of a page.
RECORDS = (
    (
        _("Conversations"),
        (
            (_("Messages"), _("Each message of a person and of an agent."), "memory.message"),
            (
                _("Recalls"),
                _("What an agent found in its memory for a reply, and its prompt."),
                "memory.recallevent",
            ),
            (_("Tool calls"), _("What agents did or asked to do."), "orchestrator.toolcall"),
            (
                _("Conversation items"),
                _("Tool calls and results that programs sent through the OpenAI API."),
                "memory.conversationitem",
            ),
            (_("Sessions"), _("Threads that LangGraph keeps."), "sessions"),
            (
                _("Recent turns"),
                _("The last turns of each agent and user, as prompts include them."),
                "windows",
            ),
            (
                _("Cleared turns"),
                _("When recent turns were cleared, and by whom."),
                "memory.windowclear",
            ),
        ),
    ),
    (
        _("Memory"),
        (
            (_("Facts"), _("What agents know, with earlier versions."), "memory.memoryentry"),
            (
                _("Evidence of facts"),
                _("The quotes of messages from which facts come."),
                "memory.factevidence",
            ),
            (_("Fact events"), _("Each change of a fact, and by whom."), "memory.factevent"),
            (
                _("Extraction runs"),
                _("When facts were extracted, with preview and undo."),
                "orchestrator.extractionrun",
            ),
            (
                _("Memories"),
                _("What an agent recalls for a person and a text: try it."),
                "memories",
            ),
            (
                _("Vectors"),
                _("Messages in pieces, with their embeddings."),
                "memory.conversationembedding",
            ),
            (_("Exclusions"), _("Messages that are not recalled."), "memory.recallexclusion"),
        ),
    ),
    (
        _("People"),
        (
            (
                _("Identities"),
                _("Accounts in channels, and the person of each."),
                "orchestrator.channelidentity",
            ),
            (
                _("Agents and people"),
                _("Which agent has memories of which person."),
                "memory.scope",
            ),
            (
                _("Erasures"),
                _("Requests to erase a person, with receipts."),
                "audit.erasurerequest",
            ),
            (
                _("Erased messages"),
                _("Requests to erase a message or a conversation."),
                "audit.messageerasure",
            ),
        ),
    ),
    (
        _("Queue"),
        (
            (_("Replies"), _("Messages without a reply, and why."), "orchestrator.pendingreply"),
            (_("Deliveries"), _("Replies on their way to a channel."), "channels.delivery"),
            (
                _("Embeddings"),
                _("Messages that cannot be searched yet."),
                "memory.pendingembedding",
            ),
            (
                _("Extractions"),
                _("How far facts were extracted from each conversation."),
                "orchestrator.extractioncursor",
            ),
            (
                _("Events of channels"),
                _("What Slack sent and is not read yet."),
                "channels.arrival",
            ),
            (
                _("Sent notifications"),
                _("Who was notified of what; failed ones can be retried."),
                "orchestrator.notification",
            ),
        ),
    ),
    (
        _("Slack"),
        (
            (_("Slack users"), _("Names of users in Slack."), "channels.slackuser"),
            (
                _("Slack accounts"),
                _("Members of the team who answer people from Slack."),
                "channels.slackmember",
            ),
        ),
    ),
    (
        _("Access and usage"),
        (
            (_("Access log"), _("Who read or changed what."), "audit.accessevent"),
            (_("Exports"), _("Files of lists, and who requested them."), "audit.listexport"),
            (_("Usage"), _("Quotas, messages and costs by day."), "orchestrator.dailyusage"),
            (_("Model calls"), _("Each request to a language model."), "orchestrator.modelcall"),
            (_("Logins"), _("Who is logged in, and until when."), "logins"),
            (_("Activity by day"), _("The numbers of the charts of Today."), "activity"),
        ),
    ),
)
# Unfold's templates ask every entry for these; to learn that there is no such key takes a template
# as long as a hundred that it finds.
UNUSED_KEYS = {"badge": None, "link_callback": None, "collapsible": False}


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The groups of the sidebar, with the pages that this person may open."""
    is_tenant = getattr(request, "tenant", None) is not None
    counts = waiting_counts(request) if is_tenant else {}
    groups: list[dict[str, Any]] = []
    for title, entries in TENANT_MENU if is_tenant else OPERATORS_MENU:
        items = [
            {
                **UNUSED_KEYS,
                "title": name,
                "icon": icon,
                "link": list_url(target),
                "badge": badge(counts.get(target, 0)) or None,
                **({"active": _is_in_records(request)} if target == "records" else {}),
            }
            for name, icon, target in entries
            if may_open(request, target)
        ]
        if items:
            group = {"title": title, "separator": bool(groups), "items": items}
            groups.append({**UNUSED_KEYS, **group})
    return groups


def _is_in_records(request: HttpRequest) -> bool:
    """Return whether the page is Records, or belongs to one of its tables."""
    targets = ["records", *(target for _, entries in RECORDS for *_, target in entries)]
    return request.path.startswith(tuple(map(list_url, targets)))


def account_links(request: HttpRequest) -> list[dict[str, Any]]:
    """The links of the account menu; empty: those of unfold."""
    if getattr(request, "tenant", None) is None or not may_open(request, "time_zone"):
        return []
    links = [{"title": gettext("Time zone"), "link": reverse("admin:time_zone")}]
    if request.user.has_usable_password():  # type: ignore[union-attr]
        password = reverse("admin:password_change")
        links.append({"title": gettext("Change password"), "link": password})
    return links


def may_open(request: HttpRequest, target: str) -> bool:
    """Return whether the person may open an entry; Records with any of its tables."""
    if target == "records":
        return any(may_open(request, of) for _, entries in RECORDS for _, _, of in entries)
    permission = permission_of(target)
    return not permission or request.user.has_perm(permission)


def visible_records(request: HttpRequest) -> Iterator[tuple[Any, list[tuple[Any, Any, str, str]]]]:
    """Yield the groups of Records, with the title, explanation, address and badge of each entry."""
    counts = waiting_counts(request)
    for group, entries in RECORDS:
        visible = [
            (title, text, list_url(target), badge(counts.get(target, 0)))
            for title, text, target in entries
            if may_open(request, target)
        ]
        if visible:
            yield group, visible


@tenant_site.page("records/", name="records", permission="")
def records(request: HttpRequest) -> HttpResponseBase:
    """Show the tables of the tenant that the person may open."""
    groups = list(visible_records(request))
    if not groups:
        raise PermissionDenied
    log_access(request, Action.VIEW, "records")
    return tenant_site.render(
        request, "konstruct/records.html", title=gettext("Records"), groups=groups
    )


def titles_of_lists(request: HttpRequest) -> dict[str, tuple[Any, bool]]:
    """Return the title of each list that the menu or Records has, and whether Records has it."""
    is_tenant = getattr(request, "tenant", None) is not None
    menu = TENANT_MENU if is_tenant else OPERATORS_MENU
    titles = {
        list_url(target): (title, False)
        for _group, entries in menu
        for title, _icon, target in entries
    }
    if is_tenant:
        for _group, entries in RECORDS:
            titles |= {list_url(target): (title, True) for title, _text, target in entries}
    return titles


def list_titles_context(request: HttpRequest) -> dict[str, Any]:
    """Context processor: `titles_of_lists` of the request's site, computed where a page uses it."""
    return {"titles_of_lists": partial(titles_of_lists, request)}
