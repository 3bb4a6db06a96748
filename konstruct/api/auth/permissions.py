"""Permissions and limits of callers: scopes and binding of a key, permissions of a person."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from django.db import models
from rest_framework.exceptions import PermissionDenied
from rest_framework.fields import Field
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from konstruct.api.auth.keys import Program, owns_proposal
from konstruct.api.models import KeyScope
from konstruct.orchestrator.agents import find_agent
from konstruct.orchestrator.exceptions import AgentNotFound
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.models.agents import AgentQuerySet
from memory.facts import Author
from memory.models.facts import AuthorKind
from tenants import serving
from tenants.context import current_tenant_id
from tenants.exceptions import KonstructError
from tenants.limits.quotas import request_buckets
from tenants.limits.rate_limit import take_from

M = TypeVar("M", bound=models.Model)


class OutsideOfKey(KonstructError):
    """The request is outside of the binding of its key."""


@dataclass(frozen=True)
class Caller:
    """The program or person of a request, with the agent and user that a key is bound to.

    A key has scopes. A person has no scopes, but permissions.
    """

    id: str
    """Unique id of the API key or the person: `key-…` or `person-…`."""
    name: str
    scopes: frozenset[str]
    agent_id: UUID | None = None
    user_id: str | None = None
    person_id: str = ""
    """The person who sends the request, or who made the key; empty: an operator made it."""
    # The agent and the user in the request, for the access log.
    named: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    # The agent that was read together with the key, by the name or id in the request.
    agents_read: Mapping[str, Agent] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_bound(self) -> bool:
        """Whether the key is bound to an agent or a user."""
        return self.agent_id is not None or self.user_id is not None

    @property
    def author(self) -> Author:
        """The caller as the author of changes of facts."""
        kind, _, identity = self.id.partition("-")
        is_program = kind == "key"
        return Author(
            AuthorKind.PROGRAM if is_program else AuthorKind.PERSON,
            identity,
            self.name,
            owns_proposal=partial(
                owns_proposal,
                person_id=self.person_id,
                key_id=UUID(identity) if is_program else None,
            ),
        )

    def rows(
        self, rows: "models.QuerySet[M]", *, agent: str = "agent_id", user: str = "user_id"
    ) -> "models.QuerySet[M]":
        """Filter rows by the binding of the key, on the columns `agent` and `user`."""
        if self.agent_id is not None:
            rows = rows.filter(**{agent: self.agent_id})
        if self.user_id is not None:
            rows = rows.filter(**{user: self.user_id})
        return rows

    def agents(self) -> AgentQuerySet:
        """Return the agents that the caller may use."""
        agents = Agent.objects.all()
        return agents if self.agent_id is None else agents.filter(pk=self.agent_id)

    def only_agent(self) -> Agent | None:
        """Return the default agent of a request without one; None if there are several.

        It is the agent of the key, or else the tenant's only active agent.
        """
        agents = self.agents() if self.agent_id else self.agents().filter(is_active=True)
        found = [*agents[:2]]
        return found[0] if len(found) == 1 else None

    def agent(self, name_or_id: str, *, active: bool = False) -> Agent:
        """Return the agent of that name or id.

        Raises AgentNotFound also for any other agent than a bound key's own.
        """
        agent = self.agents_read.get(name_or_id)
        is_own = agent is not None and self.agent_id in (None, agent.id)
        if agent is None or not is_own or (active and not agent.is_active):
            if self.agent_id is not None:
                own = Agent.objects.get(pk=self.agent_id)
                if name_or_id != own.name and name_or_id.lower() != str(own.pk):
                    raise AgentNotFound(
                        f"This key is bound to the agent {own.name!r}, and the request names"
                        f" {name_or_id!r}."
                    )
            agent = find_agent(name_or_id, active=active, among=self.agents())
        self.named["agent_id"] = agent.id
        return agent

    def with_binding(self, data: Any, fields: Mapping[str, Field]) -> Any:
        """Add the key's agent and user to a request that must name them and does not."""
        own = {"agent": self.agent_id, "user_id": self.user_id}
        missing = {
            name: str(value)
            for name, value in own.items()
            if value is not None and name in fields and fields[name].required and name not in data
        }
        return {**missing, **data} if missing else data

    def user(self, user_id: str) -> str:
        """Return a user id of the request. Raises OutsideOfKey for another user than the key's."""
        self.named["user_id"] = user_id
        if self.user_id not in (None, user_id):
            raise OutsideOfKey(
                f"This key is bound to the user {self.user_id!r}, and the request names"
                f" {user_id!r}."
            )
        return user_id

    def agent_id_in(self, fields: Mapping[str, Any]) -> UUID | None:
        """Return the id of the request's `agent`, or else of the key's agent."""
        return self.agent(fields["agent"]).id if "agent" in fields else self.agent_id

    def user_id_in(self, fields: Mapping[str, Any]) -> str | None:
        """Return the request's `user_id`, or else the key's user."""
        return self.user(fields["user_id"]) if "user_id" in fields else self.user_id

    def require_prompts(self) -> None:
        """Raise OutsideOfKey for a key that is bound to a user, because it must not read prompts.

        A prompt has the agent's instructions, and facts about no user.
        """
        if self.user_id is not None:
            raise OutsideOfKey(
                f"This key is bound to the user {self.user_id!r}, and such a key reads no prompts."
            )


def caller_of(request: Request) -> Caller:
    """Return the caller of an authenticated request: one object for each request."""
    caller: Caller | None = getattr(request, "_caller", None)
    if caller is None:
        user: Any = request.user
        if isinstance(user, Program):
            key = user.key
            caller = Caller(
                f"key-{key.id}",
                key.name,
                frozenset(key.scopes),
                key.agent_id,
                key.user_id,
                person_id=key.created_by,
                agents_read=user.agents,
            )
        else:
            caller = Caller(f"person-{user.pk}", str(user), frozenset(), person_id=str(user.pk))
        request._caller = caller  # type: ignore[attr-defined]
    return caller


class CallerPermission(BasePermission):
    """Refuses a request of a key or person that may not perform the view's operation.

    Views without `allows_bound_keys` refuse keys that are bound to an agent or a user. OPTIONS
    describes the address to every person, and to keys with the scope to read.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return whether the request may go on, or raise PermissionDenied with the reason."""
        if not hasattr(view, (request.method or "GET").lower()):
            return True  # REST framework answers 405
        if not request.user:
            return False
        operation = view.operation
        if isinstance(request.user, Program):
            caller = caller_of(request)
            require_scope(caller, *(operation.scopes if operation else (KeyScope.READ,)))
            if caller.is_bound and not view.allows_bound_keys:
                raise PermissionDenied(
                    "This concerns the whole tenant; yours is a key of one agent or one user."
                )
            return True
        needed = operation.permissions if operation else ()
        if operation is not None and not needed:
            method = "GET" if request.method == "HEAD" else request.method
            raise PermissionDenied(f"{method} is for programs with an API key.")
        missing = [name for name in needed if not person_may(request.user, name)]
        if missing:
            raise PermissionDenied(
                f"This needs the permission {', '.join(missing)}."
                " Ask a person who manages your tenant's team for it."
            )
        return True


def require_scope(caller: Caller, *accepted: str) -> None:
    """Raise PermissionDenied unless the key has one of the accepted scopes."""
    if not caller.scopes.intersection(accepted):
        has = ", ".join(sorted(caller.scopes)) or "none"
        raise PermissionDenied(f"This needs the scope {' or '.join(accepted)}; yours: {has}.")


def person_may(user: Any, permission: str) -> bool:
    """Return whether a person has a permission. As in the admin, `change` implies `view`."""
    app, codename = permission.split(".")
    may_change = codename.startswith("view_") and user.has_perm(
        f"{app}.change_{codename.removeprefix('view_')}"
    )
    return bool(user.has_perm(permission)) or may_change


# Reads have a separate bucket, so that polling for replies leaves tokens for messages.
SENDING = "rest"
READING = "api"


class TenantThrottle(BaseThrottle):
    """Takes a token for each request from the bucket of the tenant and from that of the API key.

    The bucket of a key is smaller, so that a program leaves requests to the other programs of its
    tenant.
    """

    def __init__(self) -> None:
        self.retry_after = 0.0

    def allow_request(self, request: Request, view: Any) -> bool:
        """Take a token, and store the bucket's answer for the response's headers."""
        tenant_id = current_tenant_id()
        if tenant_id is None:  # an unauthenticated request does nothing
            return True
        channel = READING if request.method in ("GET", "HEAD", "OPTIONS") else SENDING
        key = request.user.key.prefix if isinstance(request.user, Program) else None
        served = serving.tenant_of_request()
        buckets = request_buckets(served.quotas if served else {}, channel, key)
        bucket = take_from(tenant_id, buckets)
        self.retry_after = bucket.retry_after
        request._request.rate_limit = bucket  # type: ignore[attr-defined]  # for the headers below
        return bucket.allowed

    def wait(self) -> float:
        """Return the seconds until the next token."""
        return self.retry_after
