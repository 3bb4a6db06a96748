"""Authentication of a request: a program with an API key, or a tenant's admin with a session."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db import ProgrammingError, connections
from django.db.models import Model
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import APIException, AuthenticationFailed, Throttled
from rest_framework.request import Request

from konstruct.api.auth.keys import KeyText, Program, bearer_key, record_use
from konstruct.api.models import ApiKey
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.models.agents import UUID_TEXT
from memory.arguments import is_unicode
from tenants import context, exceptions, naming, servers, serving
from tenants.http import current_address
from tenants.limits.rate_limit import count_anonymous_request
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
            row = _fetch_row(text, agent if is_unicode(agent) and "\0" not in agent else "")
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


def _fetch_row(text: KeyText, agent: str) -> tuple[Any, ...] | None:
    is_id = UUID_TEXT.fullmatch(agent) is not None
    name_or_id: Any = UUID(agent) if is_id else agent
    row: tuple[Any, ...] | None = context.fetch_row(
        _statement("id" if is_id else "name", has_list=context.current_server() == servers.MAIN),
        {"tenant_id": text.tenant_id, "prefix": text.prefix, "agent": name_or_id},
    )
    return row


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
    limit, should_record = count_anonymous_request(current_address())
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
