"""The sidebars of both sites: what somebody may open, in the order in which it is used."""

from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

# Title, icon, view, permission.
TENANT_MENU = (
    (
        "",
        (
            ("Dashboard", "monitoring", "index", ""),
            ("Conversations", "forum", "conversations", "memory.view_message"),
            ("Memories", "neurology", "memories", "audit.recall_memories"),
            ("Facts", "lightbulb", "memory_memoryentry_changelist", "memory.view_memoryentry"),
            ("People", "group", "people", "memory.view_scope"),
            ("Agents", "smart_toy", "orchestrator_agent_changelist", "orchestrator.view_agent"),
        ),
    ),
    (
        "Queue",
        (
            (
                "Escalations",
                "support_agent",
                "orchestrator_escalation_changelist",
                "orchestrator.view_escalation",
            ),
            (
                "Replies",
                "mark_chat_unread",
                "orchestrator_pendingreply_changelist",
                "orchestrator.view_pendingreply",
            ),
            (
                "Deliveries",
                "outgoing_mail",
                "channels_delivery_changelist",
                "channels.view_delivery",
            ),
            (
                "Embeddings",
                "hourglass_top",
                "memory_pendingembedding_changelist",
                "memory.view_pendingembedding",
            ),
            (
                "Erasures",
                "person_off",
                "audit_erasurerequest_changelist",
                "audit.view_erasurerequest",
            ),
            (
                "Erased messages",
                "delete_sweep",
                "audit_messageerasure_changelist",
                "audit.view_messageerasure",
            ),
        ),
    ),
    (
        "Records",
        (
            ("Access log", "policy", "audit_accessevent_changelist", "audit.view_accessevent"),
            ("Messages", "chat", "memory_message_changelist", "memory.view_message"),
            (
                "Vectors",
                "scatter_plot",
                "memory_conversationembedding_changelist",
                "memory.view_conversationembedding",
            ),
            (
                "Recalls",
                "travel_explore",
                "memory_recallevent_changelist",
                "memory.view_recallevent",
            ),
            (
                "Tool calls",
                "handyman",
                "orchestrator_toolcall_changelist",
                "orchestrator.view_toolcall",
            ),
            (
                "Identities",
                "fingerprint",
                "orchestrator_channelidentity_changelist",
                "orchestrator.view_channelidentity",
            ),
            (
                "Conversation items",
                "data_object",
                "memory_conversationitem_changelist",
                "memory.view_conversationitem",
            ),
            (
                "Cleared turns",
                "backspace",
                "memory_windowclear_changelist",
                "memory.view_windowclear",
            ),
        ),
    ),
    (
        "Access",
        (
            ("Team", "badge", "auth_user_changelist", "auth.view_user"),
            ("Roles", "admin_panel_settings", "auth_group_changelist", "auth.view_group"),
            ("API keys", "key", "api_apikey_changelist", "api.view_apikey"),
            (
                "Retention",
                "auto_delete",
                "audit_retentionrule_changelist",
                "audit.view_retentionrule",
            ),
            (
                "Slack",
                "tag",
                "channels_slackinstallation_changelist",
                "channels.view_slackinstallation",
            ),
        ),
    ),
)
OPERATORS_MENU = (
    (
        "",
        (
            ("Tenants", "domain", "tenants_tenant_changelist", "tenants.view_tenant"),
            ("Operators", "badge", "auth_user_changelist", "auth.view_user"),
            ("Groups", "admin_panel_settings", "auth_group_changelist", "auth.view_group"),
            (
                "Log",
                "history",
                "tenants_operatorevent_changelist",
                "tenants.view_operatorevent",
            ),
        ),
    ),
)
# Unfold's templates ask every entry for these; to learn that there is no such key takes a template
# as long as a hundred that it finds.
NO_MORE = {"badge": None, "link_callback": None, "collapsible": False}


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The groups of the sidebar, with what this person may open."""
    menu = OPERATORS_MENU if getattr(request, "tenant", None) is None else TENANT_MENU
    groups = []
    for title, entries in menu:
        items = [
            {"title": name, "icon": icon, "link": link, **NO_MORE}
            for name, icon, view, permission in entries
            if (not permission or request.user.has_perm(permission)) and (link := _link(view))
        ]
        if items:
            groups.append({"title": title, "separator": bool(title), "items": items, **NO_MORE})
    return groups


def _link(view: str) -> str:
    try:
        return reverse(f"admin:{view}")
    except NoReverseMatch:
        return ""
