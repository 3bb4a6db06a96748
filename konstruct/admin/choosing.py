"""Whose memory a page is about: the agent and the user that its address names."""

from dataclasses import dataclass
from typing import Self
from uuid import UUID

from django.http import Http404, HttpRequest, QueryDict
from django.utils.http import urlencode

from konstruct.orchestrator.models import Agent
from memory.arguments import id_argument
from memory.exceptions import InvalidArgument


def as_uuid(text: str | None) -> UUID | None:
    """A UUID, None for any other text."""
    try:
        return UUID(text or "")
    except ValueError:
        return None


def as_number(text: str | None) -> int | None:
    """A whole number that Postgres can take, None for any other text."""
    if text and text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    return None


def as_user_id(text: str | None) -> str:
    """A user's id exactly as an address has it; empty if there is none, or none that could be."""
    try:
        return id_argument("user", text or "")
    except InvalidArgument:
        return ""


def whose(agent_id: UUID | None, user_id: str | None, **more: int | str) -> str:
    """An agent and a user, or one of them, as parameters of an address."""
    named = {"agent": str(agent_id or ""), "user": user_id or ""}
    return urlencode({**{name: value for name, value in named.items() if value}, **more})


@dataclass(frozen=True, slots=True)
class Chosen:
    """One agent and one user."""

    agent: Agent
    user_id: str

    @classmethod
    def of(cls, parameters: QueryDict) -> Self | None:
        """Whom the parameters name, None unless there are such an agent and a user."""
        agent_id, user_id = as_uuid(parameters.get("agent")), as_user_id(parameters.get("user"))
        agent = Agent.objects.filter(pk=agent_id).first() if agent_id else None
        return cls(agent, user_id) if agent and user_id else None

    @classmethod
    def required(cls, request: HttpRequest) -> Self:
        """Whom a request's address names.

        Raises Http404.
        """
        chosen = cls.of(request.GET)
        if chosen is None:
            raise Http404("The address names no agent of this tenant, or no user.")
        return chosen

    @property
    def query(self) -> str:
        """The two as parameters of an address."""
        return whose(self.agent.pk, self.user_id)
