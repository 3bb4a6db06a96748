"""Today, the home of a tenant's admin: lists of waiting work, and charts of the activity."""

import json
import shlex
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from konstruct.admin.access import log_access
from konstruct.admin.charts import READ, chart_context, chosen_days
from konstruct.admin.menu import waiting_counts, waiting_lists
from konstruct.api.models import ApiKey
from konstruct.channels.notifications.sending import has_recipients
from konstruct.orchestrator.models import Agent
from memory.models import Message
from tenants.audit.models import Action

ADD_RECIPIENT: Final = "orchestrator.add_notificationrecipient"
_EXAMPLE_AGENT: Final = "AGENT"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the checklist."""

    title: str
    is_done: bool
    note: str
    link: str = ""
    link_text: str = ""
    command: str = ""


def first_steps(request: HttpRequest) -> list[Step]:
    """Return the steps of a new tenant; empty once it has a message, or without permission.

    Args:
        request: a request of the tenant's admin. Links exist for permitted actions only.
    """
    user = request.user
    if not isinstance(user, User) or not user.has_perms(
        ("memory.view_message", "orchestrator.view_agent")
    ):
        return []
    if Message.objects.exists():
        return []
    # Of several keys, one that was used.
    last_used = list(ApiKey.objects.valid().order_by("last_used_at").values("last_used_at")[:1])
    agent = Agent.objects.order_by("created_at").values_list("name", flat=True).first()
    return [
        Step(
            gettext("Make an agent"),
            agent is not None,
            gettext("It has a name, instructions and a language model."),
            link=_add_link(user, "orchestrator", "agent"),
            link_text=gettext("Add an agent"),
        ),
        Step(
            gettext("Make an API key"),
            bool(last_used),
            gettext("A program sends it with each request. It is shown once."),
            link=_add_link(user, "api", "apikey"),
            link_text=gettext("Add an API key"),
        ),
        Step(
            gettext("Copy this command and put the key in it"),
            any(key["last_used_at"] for key in last_used),
            gettext("It sends a message to the agent and waits for the reply."),
            command=_command(request, agent or _EXAMPLE_AGENT),
        ),
        Step(
            gettext("Receive the first message"),
            False,
            gettext("This list disappears after the message. Reload the page to check."),
        ),
    ]


def _add_link(user: User, app: str, model: str) -> str:
    return reverse(f"admin:{app}_{model}_add") if user.has_perm(f"{app}.add_{model}") else ""


def _command(request: HttpRequest, agent: str) -> str:
    """Return a curl command; the name of the agent is quoted for a shell."""
    address = request.build_absolute_uri(f"{reverse('messages')}?wait=30")
    body = {"agent": agent, "user_id": "maria", "thread_id": "first", "content": "Hello!"}
    return (
        f'KEY="ks_..."\ncurl -s {shlex.quote(address)} -H "Authorization: Bearer $KEY" \\\n'
        f"  -H 'Content-Type: application/json' -d {shlex.quote(json.dumps(body))}"
    )


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add Today to the index page of a tenant's site. It is Unfold's callback.

    Returns:
        The context. The charts are left out without a message, and for a user who may not read
        messages.
    """
    if getattr(request, "tenant", None) is None:
        return context
    log_access(request, Action.VIEW, "dashboard")
    counts = waiting_counts(request)
    today = {
        **context,
        "title": gettext("Today"),
        "sees_work": bool(counts),
        "waiting": waiting_lists(request),
        "lacks_recipients": "orchestrator.escalation" in counts
        and request.user.has_perm(ADD_RECIPIENT)
        and not has_recipients(),
    }
    if not request.user.has_perm(READ):
        return today
    if steps := first_steps(request):
        return {**today, "first_steps": steps}
    return {**today, **chart_context(chosen_days(request))}
