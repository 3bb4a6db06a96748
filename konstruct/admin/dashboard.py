"""Today, the home of a tenant's admin: lists of waiting work, and charts of the activity."""

from typing import Any

from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.translation import gettext

from konstruct.admin.access import log_access
from konstruct.admin.charts import READ, chart_context, chosen_days
from konstruct.admin.first_steps import first_steps
from konstruct.admin.waiting import waiting_context, waiting_counts
from konstruct.channels.notifications.sending import has_recipients
from memory.browse import statistics
from tenants.audit.models import Action

ADD_RECIPIENT = "orchestrator.add_notificationrecipient"


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add Today to the index page of a tenant's site.

    It is Unfold's callback.

    Args:
        request: the request.
        context: the context of the page.

    Returns:
        The context. The charts are left out without a message, and for a user who may not read
        messages.
    """
    if getattr(request, "tenant", None) is None:
        return context
    log_access(request, Action.VIEW, "dashboard", asked=request.GET.dict())
    waiting = waiting_context(request)
    today = {
        **context,
        "title": gettext("Today"),
        **waiting,
        "lacks_recipients": "orchestrator.escalation" in waiting_counts(request)
        and request.user.has_perm(ADD_RECIPIENT)
        and not has_recipients(),
    }
    if not request.user.has_perm(READ):
        return today
    today["first_steps"] = first_steps(request)
    if today["first_steps"]:
        return today
    return {**today, "figures": _figures(), **chart_context(chosen_days(request))}


def _figures() -> list[tuple[str, str, str]]:
    """Return how much there is of everything, each with its list."""
    amounts = statistics.row_counts()
    figures = (
        (gettext("Messages"), "messages", reverse("admin:conversations")),
        (gettext("People"), "people", reverse("admin:people")),
        (gettext("Embedded pieces"), "pieces", _changelist_url("memory_conversationembedding")),
        (gettext("Facts"), "facts", f"{_changelist_url('memory_memoryentry')}?state=now"),
    )
    size = filesizeformat(statistics.size_in_bytes())
    return [
        *((label, str(amounts[name]), link) for label, name, link in figures),
        (gettext("On disk"), size, _changelist_url("memory_message")),
    ]


def _changelist_url(name: str) -> str:
    return reverse(f"admin:{name}_changelist")
