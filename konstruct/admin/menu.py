"""The sidebars of both admin sites: the pages that the user may open."""

from functools import partial
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext_lazy as _

from konstruct.admin.waiting import badge, permission_of, waiting_counts

# Title, icon, and the model of a list, which needs its view permission; or a page and a permission.
TENANT_MENU = (
    (
        "",
        (
            (_("Today"), "today", "index", ""),
            (_("Search"), "search", "search_page", "audit.search_everyone"),
            (_("Conversations"), "forum", "conversations", "memory.view_message"),
            (_("Memories"), "neurology", "memories", "audit.recall_memories"),
            (_("Facts"), "lightbulb", "memory.memoryentry"),
            (_("Review facts"), "rule", "fact_review", "memory.review_memoryentry"),
            (_("People"), "group", "people", "memory.view_scope"),
            (_("Agents"), "smart_toy", "orchestrator.agent"),
        ),
    ),
    (
        _("Queue"),
        (
            (_("Escalations"), "support_agent", "orchestrator.escalation"),
            (_("Replies"), "mark_chat_unread", "orchestrator.pendingreply"),
            (_("Deliveries"), "outgoing_mail", "channels.delivery"),
            (_("Embeddings"), "hourglass_top", "memory.pendingembedding"),
            (_("Extractions"), "checklist", "orchestrator.extractioncursor"),
            (_("Erasures"), "person_off", "audit.erasurerequest"),
            (_("Erased messages"), "delete_sweep", "audit.messageerasure"),
        ),
    ),
    (
        _("Records"),
        (
            (_("Access log"), "policy", "audit.accessevent"),
            (_("Messages"), "chat", "memory.message"),
            (_("Sessions"), "account_tree", "sessions", "memory.view_message"),
            (_("Vectors"), "scatter_plot", "memory.conversationembedding"),
            (_("Recalls"), "travel_explore", "memory.recallevent"),
            (_("Fact events"), "history", "memory.factevent"),
            (_("Evidence of facts"), "format_quote", "memory.factevidence"),
            (_("Extraction runs"), "manage_search", "orchestrator.extractionrun"),
            (_("Usage"), "bar_chart", "usage", "orchestrator.view_modelcall"),
            (_("Model calls"), "toll", "orchestrator.modelcall"),
            (_("Tool calls"), "handyman", "orchestrator.toolcall"),
            (_("Identities"), "fingerprint", "orchestrator.channelidentity"),
            (_("Conversation items"), "data_object", "memory.conversationitem"),
            (_("Sent notifications"), "mark_email_read", "orchestrator.notification"),
            (_("Cleared turns"), "backspace", "memory.windowclear"),
        ),
    ),
    (
        _("Access"),
        (
            (_("Team"), "badge", "auth.user"),
            (_("Roles"), "admin_panel_settings", "auth.group"),
            (_("API keys"), "key", "api.apikey"),
            (_("Time zone"), "schedule", "time_zone", "memory.view_message"),
            (_("Retention"), "auto_delete", "audit.retentionrule"),
            (_("Notifications"), "notifications", "orchestrator.notificationrecipient"),
            (_("Slack"), "tag", "channels.slackinstallation"),
            (_("Slack accounts"), "alternate_email", "channels.slackmember"),
        ),
    ),
)
OPERATORS_MENU = (
    (
        "",
        (
            (_("Tenants"), "domain", "tenants.tenant"),
            (_("Usage"), "bar_chart", "usage", "tenants.view_tenant"),
            (_("Operators"), "badge", "auth.user"),
            (_("Groups"), "admin_panel_settings", "auth.group"),
            (_("Log"), "history", "tenants.operatorevent"),
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
    groups = []
    for title, entries in TENANT_MENU if is_tenant else OPERATORS_MENU:
        items = [
            {
                "title": name,
                "icon": icon,
                "link": link,
                **UNUSED_KEYS,
                "badge": badge(counts.get(target[0], 0)) or None,
            }
            for name, icon, *target in entries
            if (link := _link(request, *target))
        ]
        if items:
            groups.append({"title": title, "separator": bool(title), "items": items, **UNUSED_KEYS})
    return groups


def titles_of_lists(request: HttpRequest) -> dict[str, Any]:
    """Return the title of each list of a model that the menu has, by its address."""
    menu = TENANT_MENU if getattr(request, "tenant", None) is not None else OPERATORS_MENU
    return {
        reverse(f"admin:{target[0].replace('.', '_')}_changelist"): title
        for _group, entries in menu
        for title, _icon, *target in entries
        if "." in target[0]
    }


def list_titles_context(request: HttpRequest) -> dict[str, Any]:
    """Context processor: `titles_of_lists` of the request's site, computed where a page uses it."""
    return {"titles_of_lists": partial(titles_of_lists, request)}


def _link(request: HttpRequest, target: str, permission: str | None = None) -> str:
    """Return the address of a list or page, or "" if the person may not open it."""
    view = f"{target.replace('.', '_')}_changelist" if "." in target else target
    needed = permission_of(target) or permission
    if needed and not request.user.has_perm(needed):
        return ""
    try:
        return reverse(f"admin:{view}")
    except NoReverseMatch:
        return ""
