"""The roles of a tenant's people: auditor, curator and admin, as groups of permissions.

They are Django groups; a tenant may add others. Every migrate restores the permissions of these
three.
"""

from functools import cache
from typing import Any, Final

from django.apps import apps
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Q, QuerySet

from tenants.context import current_tenant_id

# Each role may view the rows of all models of these apps.
_VIEWED_APPS: Final = ("api", "audit", "auth", "channels", "memory", "orchestrator", "outbox")
_READ: Final = frozenset(
    {
        "audit.recall_memories",
        "audit.search_everyone",
        "audit.export_list",
        "audit.export_person",
    }
)
_CURATE: Final = frozenset(
    {
        "memory.add_memoryentry",
        "memory.change_memoryentry",
        "memory.delete_memoryentry",
        "memory.review_memoryentry",
        "memory.add_recallexclusion",
        "memory.delete_recallexclusion",
        "memory.add_windowclear",
        # Permissions to preview and replay extraction runs, and to apply and roll back.
        "orchestrator.add_extractionrun",
        "orchestrator.change_extractionrun",
        # Permission to retry a failed extraction.
        "orchestrator.change_extractioncursor",
        # Permissions to answer as a person, and to escalate a thread.
        "orchestrator.add_escalation",
        "orchestrator.change_escalation",
    }
)
_ADMINISTER: Final = frozenset(
    {
        "memory.change_pendingembedding",
        "orchestrator.add_agent",
        "orchestrator.add_historyimport",
        "orchestrator.change_agent",
        "orchestrator.add_languagemodel",
        "orchestrator.change_languagemodel",
        "orchestrator.delete_languagemodel",
        "orchestrator.change_pendingreply",
        "orchestrator.change_channelidentity",
        "outbox.add_subscription",
        "outbox.change_subscription",
        "outbox.delete_subscription",
        # Permission to retry a failed one, and to send it again.
        "outbox.change_eventdelivery",
        "audit.add_erasurerequest",
        "audit.add_retentionrule",
        "audit.change_retentionrule",
        "audit.delete_retentionrule",
        "audit.try_agent",
        "audit.clear_session",
        "api.add_apikey",
        "api.change_apikey",
        "channels.change_arrival",
        "channels.change_delivery",
        "channels.add_slackinstallation",
        "channels.change_slackinstallation",
        "channels.add_slackmember",
        "channels.change_slackmember",
        "channels.delete_slackmember",
        "auth.add_user",
        "auth.change_user",
    }
)
ROLE_DESCRIPTIONS: Final[dict[str, str]] = {
    "auditor": "reads everything, also the team, roles and keys; exports lists and people",
    "curator": "as an auditor; also changes and reviews facts, and answers as a person",
    "admin": "as a curator; also agents, API keys, retention, erasures and the team",
}


@cache
def role_permissions() -> dict[str, frozenset[str]]:
    """Return the permissions of each role."""
    views = {
        f"{model._meta.app_label}.view_{model._meta.model_name}"
        for model in apps.get_models()
        if model._meta.app_label in _VIEWED_APPS
    }
    read = _READ | views
    curate = read | _CURATE
    return {"auditor": read, "curator": curate, "admin": curate | _ADMINISTER}


def admins() -> QuerySet[User]:
    """Return the people of the tenant who can log in and change the team."""
    can_log_in = User.objects.filter(is_active=True, is_staff=True).exclude(
        password__startswith=UNUSABLE_PASSWORD_PREFIX
    )
    in_group = Group.objects.filter(name="admin").values("user")
    return can_log_in.filter(Q(is_superuser=True) | Q(pk__in=in_group))


def create_roles(**_: Any) -> None:
    """Create the three roles of the tenant that is being migrated, and set their permissions."""
    if current_tenant_id() is None:
        return
    rows = Permission.objects.select_related("content_type")
    known = {f"{row.content_type.app_label}.{row.codename}": row for row in rows}
    if not known.keys() >= role_permissions()["admin"]:
        return  # one app was migrated, or backwards: some tables do not exist
    groups = {group.name: group for group in Group.objects.filter(name__in=role_permissions())}
    for name, permissions in role_permissions().items():
        group = groups.get(name) or Group.objects.create(name=name)
        group.permissions.set([known[permission] for permission in sorted(permissions)])
