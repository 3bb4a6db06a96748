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
    {"audit.recall_memories", "audit.search_everyone", "audit.export_list", "audit.export_person"}
)
# What a role may do besides, with the rows of a model.
_CURATE: Final = {
    "memory.memoryentry": "add change delete review",
    "memory.recallexclusion": "add delete",
    "memory.windowclear": "add",
    # To preview and replay extraction runs, and to apply and roll back.
    "orchestrator.extractionrun": "add change",
    # To retry a failed extraction.
    "orchestrator.extractioncursor": "change",
    # To answer as a person, and to escalate a thread.
    "orchestrator.escalation": "add change",
}
_ADMINISTER: Final = {
    "memory.pendingembedding": "change",
    "orchestrator.agent": "add change",
    "orchestrator.channelidentity": "change",
    "orchestrator.historyimport": "add",
    "orchestrator.languagemodel": "add change delete",
    "orchestrator.pendingreply": "change",
    "outbox.subscription": "add change delete",
    # To retry a failed one, and to send it again.
    "outbox.eventdelivery": "change",
    "audit.erasurerequest": "add",
    "audit.retentionrule": "add change delete",
    "api.apikey": "add change",
    "channels.arrival": "change",
    "channels.delivery": "change",
    "channels.slackinstallation": "add change",
    "channels.slackmember": "add change delete",
    "auth.user": "add change",
}
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
    curate = read | _permissions(_CURATE)
    administer = _permissions(_ADMINISTER) | {"audit.try_agent", "audit.clear_session"}
    return {"auditor": read, "curator": curate, "admin": curate | administer}


def _permissions(actions_by_model: dict[str, str]) -> set[str]:
    return {
        f"{app}.{action}_{name}"
        for model, actions in actions_by_model.items()
        for app, name in [model.split(".")]
        for action in actions.split()
    }


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
