"""Who sends a request, and what they may do.

A program has an API key with scopes, limits and maybe a binding; a tenant's admin has a session
and permissions.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db import ProgrammingError, connections
from django.db.models import Model, QuerySet
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import (
    APIException,
    AuthenticationFailed,
    PermissionDenied,
    Throttled,
)
from rest_framework.fields import Field
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from konstruct.api.auth.keys import KeyText, Program, bearer_key, owns_proposal, record_use
from konstruct.api.models import ApiKey, KeyScope
from konstruct.orchestrator.agents import find_agent
from konstruct.orchestrator.exceptions import AgentNotFound
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.models.agents import UUID_TEXT, AgentQuerySet
from memory.arguments import is_unicode
from memory.facts import Author
from memory.models.facts import AuthorKind
from tenants import context, exceptions, http, naming, servers, serving
from tenants.limits.quotas import request_buckets
from tenants.limits.rate_limit import count_anonymous_request, take_from
from tenants.models import Tenant

M = TypeVar("M", bound=Model)


# Columns of the list of tenants.
TENANT_COLUMNS: Final = ("slug", "state", "moving_to", "migrated_to", "quotas", "usage")


@dataclass(frozen=True)
class KeyLookup:
    """The rows that were found for the text of a key."""

    text: KeyText
    key: ApiKey | None
    """None if the key is invalid."""
    agents: dict[str, Agent]
    """The agent of the request, by the name or id in it; empty without such an agent."""
    tenant: Tenant
    """The tenant's row, with its limits and its measured usage."""


def look_up_key(text: KeyText, *, agent: str = "", tenant: Tenant | None = None) -> KeyLookup:
    """Look up a key, its tenant and an agent by name or id, in one statement.

    Args:
        text: the key.
        agent: the name or id of the agent in the request, if it has one.
        tenant: the tenant's row. With several servers, the caller has read it.

    Raises:
        UnknownTenant: the key names no tenant.
        TenantNotServing: the key is valid and the tenant is suspended.
        TenantPaused: the tenant is not served now, whether the key is valid or not.
        ServerDown: its server is down.
    """
    try:
        with context.known_tenant(text.tenant_id):
            context.require_server_up()
            server = context.current_server()
            named: Any = agent if is_unicode(agent) and "\0" not in agent else ""
            column = "name"
            if UUID_TEXT.fullmatch(named):
                column, named = "id", UUID(named)
            row = context.fetch_row(
                _statement(column, has_list=server == servers.MAIN),
                {"tenant_id": text.tenant_id, "prefix": text.prefix, "agent": named},
            )
    except (ProgrammingError, exceptions.UnknownTenant):
        # For example for a column that the tenant's schema lacks, or without the schema.
        serving.require_serving(text.tenant_id)
        raise
    if row is None:
        raise exceptions.UnknownTenant(f"no tenant has the id {text.tenant_id}")
    tenant_values, values = row[: len(TENANT_COLUMNS)], row[len(TENANT_COLUMNS) :]
    if server == servers.MAIN:
        slug, state, moving_to, migrated_to, quotas, usage = tenant_values
        tenant = Tenant(id=text.tenant_id, slug=slug, state=state, migrated_to=migrated_to)
        tenant.schema_name, tenant.moving_to = naming.schema_name_of(text.tenant_id), moving_to
        tenant.quotas, tenant.usage = json.loads(quotas), json.loads(usage)
    elif tenant is None:
        tenant = serving.find_tenant(text.tenant_id)
    key_column_count = len(_columns(ApiKey))
    key = _build_row(ApiKey, values[:key_column_count], server)
    found = _build_row(Agent, values[key_column_count:], server)
    is_valid_key = key is not None and text.matches(key.secret_digest)
    if tenant.state == Tenant.State.SUSPENDED and not is_valid_key:
        raise exceptions.UnknownTenant(f"no valid key of the suspended tenant {tenant.slug!r}")
    serving.refuse_unless_serving(tenant)
    if key is None or not is_valid_key:
        return KeyLookup(text, None, {}, tenant)
    with context.tenant_scope(text.tenant_id):
        record_use(key)
    return KeyLookup(text, key, {} if found is None else {agent: found}, tenant)


@cache
def _statement(column: str, *, has_list: bool) -> str:
    """Return the statement. Servers without the table of tenants return empty columns of it."""
    columns = [f"api_key.{name}" for name in _columns(ApiKey)]
    columns += [f"agent.{name}" for name in _columns(Agent)]
    tenants = "SELECT id, slug, state, moving_to, migrated_to, quotas::text, usage::text"
    tenants += f" FROM {Tenant._meta.db_table}"
    if not has_list:
        tenants = "SELECT %(tenant_id)s::uuid AS id, " + ", ".join(
            f"'' AS {name}" for name in TENANT_COLUMNS
        )
    of_tenant = ", ".join(f"tenant.{name}" for name in TENANT_COLUMNS)
    return f"""
SELECT {of_tenant}, {", ".join(columns)}
FROM ({tenants}) AS tenant
LEFT JOIN {ApiKey._meta.db_table} AS api_key
    ON api_key.prefix = %(prefix)s AND api_key.revoked_at IS NULL
    AND (api_key.expires_at IS NULL OR api_key.expires_at > now())
LEFT JOIN {Agent._meta.db_table} AS agent ON agent.{column} = %(agent)s
WHERE tenant.id = %(tenant_id)s
"""  # noqa: S608  (names of our own models)


@cache
def _columns(model: type[Model]) -> list[str]:
    return [str(field.column) for field in model._meta.concrete_fields]


def _build_row(model: type[M], values: Sequence[Any], server: str) -> M | None:
    """Return the instance with these values; None if all are NULL, because the join found none."""
    if all(value is None for value in values):
        return None
    fields = model._meta.concrete_fields
    converted = [
        field.from_db_value(value, None, connections[server])
        if hasattr(field, "from_db_value")  # JSON
        else value
        for field, value in zip(fields, values, strict=True)
    ]
    return model.from_db(server, [field.attname for field in fields], converted)


# The same message for every reason, so that a guess does not reveal which part was right.
REFUSAL_MESSAGE = (
    "The API key is not valid here: it is unknown, revoked, expired, or another tenant's. "
    "Make one in the tenant's admin."
)


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer KEY`. The middleware has read the key, and entered its tenant."""

    def authenticate(self, request: Request) -> tuple[Program, ApiKey] | None:
        """Return the program and its key; None without a Bearer header. An invalid key raises."""
        credentials = bearer_key(request.headers.get("Authorization", ""))
        if credentials is None:
            return None
        key_lookup: KeyLookup | None = getattr(request._request, "key_lookup", None)
        if key_lookup is None or key_lookup.key is None:
            raise _refusal(request)
        return Program(key_lookup.key, key_lookup.agents), key_lookup.key

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge of a 401."""
        return 'Bearer realm="konstruct"'


def _refusal(request: Request) -> APIException:
    """Return the error for an invalid key: Throttled after too many of them from one address.

    Valid keys from the same address are not affected.
    """
    limit, should_record = count_anonymous_request(http.current_address())
    request._request.should_record = should_record  # type: ignore[attr-defined]
    if limit is not None and not limit.allowed:
        return Throttled(limit.retry_after)
    return AuthenticationFailed(REFUSAL_MESSAGE)


class AdminSessionAuthentication(SessionAuthentication):
    """A tenant's admin in a browser, on the tenant's host, with CSRF protection."""

    def authenticate(self, request: Request) -> tuple[Any, None] | None:
        """Return the user if they may use the tenant's admin; operators have no tenant here."""
        if context.current_tenant_id() is None:
            return None
        user = getattr(request._request, "user", None)
        if user is None or not (user.is_active and user.is_staff):
            return None
        # Without a valid CSRF token, REST framework removes the user from the request.
        request._request.refused_user = user  # type: ignore[attr-defined]  # for the access log
        self.enforce_csrf(request)
        return user, None


class ApiKeyScheme(OpenApiAuthenticationExtension):
    """API keys in the OpenAPI description."""

    target_class = "konstruct.api.auth.authentication.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """Return a bearer scheme."""
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "`Authorization: Bearer ks_…`, from the tenant's admin. On a "
            "host that serves all tenants the key determines the tenant.",
        }


class AdminSessionScheme(OpenApiAuthenticationExtension):
    """Sessions of the admin in the OpenAPI description."""

    target_class = "konstruct.api.auth.authentication.AdminSessionAuthentication"
    name = "adminSession"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """Return a cookie scheme."""
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "The login of the tenant's admin, on the tenant's host; writes need the "
            "X-CSRFToken header.",
        }


class OutsideOfKey(exceptions.KonstructError):
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
        self, rows: "QuerySet[M]", *, agent: str = "agent_id", user: str = "user_id"
    ) -> "QuerySet[M]":
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

    def thread_in(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the conversation that a request names, by its three columns."""
        return {
            "agent_id": self.agent(fields["agent"]).id,
            "user_id": self.user(fields["user_id"]),
            "thread_id": fields["thread_id"],
        }

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
        tenant_id = context.current_tenant_id()
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
