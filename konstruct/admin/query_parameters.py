"""Parameters of addresses: ids, and the agent and user of a page."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self
from uuid import UUID

from django.http import Http404, HttpRequest
from django.utils.dateparse import parse_datetime
from django.utils.http import urlencode
from django.utils.timezone import is_aware

from konstruct.orchestrator.models import Agent
from memory.arguments import id_argument
from memory.exceptions import InvalidArgument


def as_uuid(text: str | None) -> UUID | None:
    """Return a UUID, or None for any other text."""
    try:
        return UUID(text or "")
    except ValueError:
        return None


def as_number(text: str | None) -> int | None:
    """Return a whole number that fits a bigint, or None for any other text."""
    if text and text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    return None


def as_position(text: str | None) -> tuple[datetime, str] | None:
    """Return the moment and the key of `position_text`, or None for any other text."""
    moment, _, key = (text or "").replace("\0", "").partition(" ")
    try:
        at = parse_datetime(moment)
    except ValueError:
        return None
    return (at, key) if at and is_aware(at) else None


def position_text(at: datetime, key: object) -> str:
    """Return the position of a row in a list by time, as a parameter of an address."""
    return f"{at.astimezone(UTC).isoformat()} {key}"


def as_user_id(text: str | None) -> str:
    """Return a user's id exactly as in the address, or "" if it is missing or invalid."""
    try:
        return id_argument("user", text or "")
    except InvalidArgument:
        return ""


def agent_user_query(agent_id: UUID | None, user_id: str | None, **more: int | str) -> str:
    """Return an agent and a user, or one of them, as parameters of an address."""
    values = {"agent": str(agent_id or ""), "user": user_id or ""}
    return urlencode({**{name: value for name, value in values.items() if value}, **more})


@dataclass(frozen=True, slots=True)
class AgentAndUser:
    """One agent and one user."""

    agent: Agent
    user_id: str

    @classmethod
    def from_request(cls, request: HttpRequest) -> Self:
        """Return the agent and user of a request.

        Raises:
            Http404: the address names no agent of this tenant, or no user.
        """
        agent_id, user_id = as_uuid(request.GET.get("agent")), as_user_id(request.GET.get("user"))
        agent = Agent.objects.filter(pk=agent_id).first() if agent_id else None
        if agent is None or not user_id:
            raise Http404("The address names no agent of this tenant, or no user.")
        return cls(agent, user_id)

    @property
    def query(self) -> str:
        """The two as parameters of an address."""
        return agent_user_query(self.agent.pk, self.user_id)
