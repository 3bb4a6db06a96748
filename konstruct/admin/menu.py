"""The sidebars of both admin sites: the pages that the user may open."""

from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from konstruct.admin.waiting import shown, waiting

# Title, icon, and the model of a list, which needs its view permission; or a page and a permission.
TENANT_MENU = (
    (
        "",
        (
            ("Today", "today", "index", ""),
            ("Search", "search", "search_page", "audit.search_everyone"),
            ("Conversations", "forum", "conversations", "memory.view_message"),
            ("Memories", "neurology", "memories", "audit.recall_memories"),
            ("Facts", "lightbulb", "memory.memoryentry"),
            ("Review facts", "rule", "fact_review", "memory.review_memoryentry"),
            ("Review replies", "grading", "reply_review", "orchestrator.add_replyreview"),
            ("People", "group", "people", "memory.view_scope"),
            ("Agents", "smart_toy", "orchestrator.agent"),
        ),
    ),
    (
        "Queue",
        (
            ("Escalations", "support_agent", "orchestrator.escalation"),
            ("Replies", "mark_chat_unread", "orchestrator.pendingreply"),
            ("Deliveries", "outgoing_mail", "channels.delivery"),
            ("Embeddings", "hourglass_top", "memory.pendingembedding"),
            ("Extractions", "checklist", "orchestrator.extractioncursor"),
            ("Erasures", "person_off", "audit.erasurerequest"),
            ("Erased messages", "delete_sweep", "audit.messageerasure"),
        ),
    ),
    (
        "Records",
        (
            ("Access log", "policy", "audit.accessevent"),
            ("Messages", "chat", "memory.message"),
            ("Sessions", "account_tree", "sessions", "memory.view_message"),
            ("Vectors", "scatter_plot", "memory.conversationembedding"),
            ("Recalls", "travel_explore", "memory.recallevent"),
            ("Fact events", "history", "memory.factevent"),
            ("Evidence of facts", "format_quote", "memory.factevidence"),
            ("Extraction runs", "manage_search", "orchestrator.extractionrun"),
            ("Usage", "bar_chart", "usage", "orchestrator.view_modelcall"),
            ("Model calls", "toll", "orchestrator.modelcall"),
            ("Tool calls", "handyman", "orchestrator.toolcall"),
            ("Reply reviews", "reviews", "orchestrator.replyreview"),
            ("Identities", "fingerprint", "orchestrator.channelidentity"),
            ("Conversation items", "data_object", "memory.conversationitem"),
            ("Sent notifications", "mark_email_read", "orchestrator.notification"),
            ("Cleared turns", "backspace", "memory.windowclear"),
        ),
    ),
    (
        "Access",
        (
            ("Team", "badge", "auth.user"),
            ("Roles", "admin_panel_settings", "auth.group"),
            ("API keys", "key", "api.apikey"),
            ("Time zone", "schedule", "time_zone", "memory.view_message"),
            ("Retention", "auto_delete", "audit.retentionrule"),
            ("Notifications", "notifications", "orchestrator.notificationrecipient"),
            ("Slack", "tag", "channels.slackinstallation"),
            ("Slack accounts", "alternate_email", "channels.slackmember"),
        ),
    ),
)
OPERATORS_MENU = (
    (
        "",
        (
            ("Tenants", "domain", "tenants.tenant"),
            ("Operators", "badge", "auth.user"),
            ("Groups", "admin_panel_settings", "auth.group"),
            ("Log", "history", "tenants.operatorevent"),
        ),
    ),
)
# Unfold's templates ask every entry for these; to learn that there is no such key takes a template
# as long as a hundred that it finds.
NO_MORE = {"badge": None, "link_callback": None, "collapsible": False}


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The groups of the sidebar, with what this person may open."""
    is_tenant = getattr(request, "tenant", None) is not None
    counts = waiting(request) if is_tenant else {}
    groups = []
    for title, entries in TENANT_MENU if is_tenant else OPERATORS_MENU:
        items = [
            {
                "title": name,
                "icon": icon,
                "link": link,
                **NO_MORE,
                "badge": shown(counts.get(target[0], 0)) or None,
            }
            for name, icon, *target in entries
            if (link := _link(request, *target))
        ]
        if items:
            groups.append({"title": title, "separator": bool(title), "items": items, **NO_MORE})
    return groups


def _link(request: HttpRequest, target: str, permission: str | None = None) -> str:
    """Return the address of a list or page, or "" if the person may not open it."""
    app, _, model = target.partition(".")
    view = f"{app}_{model}_changelist" if model else target
    needed = f"{app}.view_{model}" if model else permission
    if needed and not request.user.has_perm(needed):
        return ""
    try:
        return reverse(f"admin:{view}")
    except NoReverseMatch:
        return ""
