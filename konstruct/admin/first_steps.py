"""The checklist of a new tenant's home: from the first agent to the first message."""

import json
import shlex
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from konstruct.api.models import ApiKey
from konstruct.orchestrator.models import Agent
from memory.models import Message

_EXAMPLE_AGENT = "AGENT"


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
