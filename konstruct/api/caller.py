"""Who makes a request, and what of the tenant they may see and do."""

from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models
from rest_framework.request import Request

from konstruct.api.access import Program
from konstruct.api.models import KeyScope
from konstruct.orchestrator.agents import find_agent
from konstruct.orchestrator.exceptions import AgentNotFound
from konstruct.orchestrator.models import Agent
from tenants.exceptions import KonstructError

M = TypeVar("M", bound=models.Model)

# What a person in a browser may do by the API: as much as their role lets them do in the admin.
PERMISSIONS = {
    KeyScope.READ: "memory.view_message",
    KeyScope.WRITE: "memory.add_message",
    KeyScope.ERASE: "memory.delete_message",
}


class OutsideOfKey(KonstructError):
    """The key is bound to one user, and the request is about another, or not the user's."""


@dataclass(frozen=True)
class Caller:
    """A program or a person: their scopes, and the one agent or user that a key is bound to."""

    name: str
    scopes: frozenset[str]
    agent_id: UUID | None = None
    user_id: str | None = None

    @property
    def is_bound(self) -> bool:
        """Whether a part of the tenant is all that there is for this caller."""
        return self.agent_id is not None or self.user_id is not None

    def rows(
        self, rows: "models.QuerySet[M]", *, agent: str = "agent_id", user: str = "user_id"
    ) -> "models.QuerySet[M]":
        """Only the rows that the caller may see. `agent` and `user` are the rows' columns."""
        if self.agent_id is not None:
            rows = rows.filter(**{agent: self.agent_id})
        if self.user_id is not None:
            rows = rows.filter(**{user: self.user_id})
        return rows

    def agents(self) -> "models.QuerySet[Agent]":
        """The agents that there are for the caller."""
        agents = Agent.objects.all()
        return agents if self.agent_id is None else agents.filter(pk=self.agent_id)

    def agent(self, name_or_id: str, *, active: bool = False) -> Agent:
        """Return the agent of that name or id.

        Raises AgentNotFound also for one that the key is not bound to: there is no other for it.
        """
        agent = find_agent(name_or_id, active=active)
        if self.agent_id not in (None, agent.id):
            raise AgentNotFound(
                f"No agent that this key may use has the name or id {name_or_id!r}."
            )
        return agent

    def user(self, user_id: str) -> str:
        """Return the user id that a request names; raises OutsideOfKey if it may not."""
        if self.user_id not in (None, user_id):
            raise OutsideOfKey(
                f"This key is bound to the user {self.user_id!r}, and this is about another."
            )
        return user_id

    def require_prompts(self) -> None:
        """Raise OutsideOfKey for a user's key: what an agent is told is not a user's to read.

        A prompt holds the agent's instructions, and facts that are about nobody in particular.
        """
        if self.user_id is not None:
            raise OutsideOfKey(
                f"What an agent is told is not for a user's key to read, here {self.user_id!r}'s."
            )


def caller_of(request: Request) -> Caller:
    """Return who makes an authenticated request."""
    user: Any = request.user
    if isinstance(user, Program):
        key = user.key
        return Caller(key.name, frozenset(key.scopes), key.agent_id, key.user_id)
    return Caller(str(user), frozenset(_scopes_of(user)))


def _scopes_of(user: AbstractBaseUser | AnonymousUser) -> list[str]:
    has_perm = getattr(user, "has_perm", None)
    return (
        [] if has_perm is None else [each for each, perm in PERMISSIONS.items() if has_perm(perm)]
    )
