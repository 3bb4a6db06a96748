"""Middleware: the tenant of a request by its host name, sessions, and streamed responses."""

from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any, TypeVar, cast
from uuid import UUID

from django.conf import settings
from django.contrib.sessions import middleware
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase
from django.http.request import split_domain_port
from django.http.response import StreamingHttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tenants.context import leave_tenant, require_server_up, tenant_scope
from tenants.exceptions import TenantNotServing, TenantPaused, UnknownTenant
from tenants.http.refusals import refuse, refuse_later
from tenants.log_context import bind_request_ids
from tenants.models import Domain, Tenant
from tenants.postgresql.exceptions import ServerDown
from tenants.servers import cache_server
from tenants.serving import as_tenant_moving, refuse_unless_serving, use_tenant_row

GetResponse = Callable[[HttpRequest], HttpResponseBase]

_REFUSALS: dict[Tenant.State, tuple[HTTPStatus, Any, Any]] = {
    Tenant.State.SUSPENDED: (
        HTTPStatus.FORBIDDEN,
        _("This service is suspended."),
        _("Its operator can resume it. Its data is kept."),
    ),
    Tenant.State.PROVISIONING: (
        HTTPStatus.SERVICE_UNAVAILABLE,
        _("This service is being set up; try again later."),
        "",
    ),
}


class TenantMiddleware:
    """Sets ``request.tenant`` (None on a public host) and the URL configuration.

    On a tenant's host the tenant is pinned: no code that serves the request can enter another one.
    On a public host there is no tenant until later code enters one, such as that of an API key.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        leave_tenant()
        host = host_name(request.get_host())
        if host in settings.PUBLIC_HOSTS:
            return self._serve(request, None, settings.PUBLIC_SCHEMA_URLCONF)
        try:
            tenant = _tenant_at(host)
        except UnknownTenant:
            # The same answer for every unknown host: it does not show which hosts have a tenant.
            remedy = gettext("Check the host in the address, or ask the people who gave it to you.")
            return refuse(
                request, HTTPStatus.NOT_FOUND, gettext("No service has this address."), remedy
            )
        except TenantPaused as error:
            return refuse_later(request, error)
        except TenantNotServing as error:
            return refuse(request, *_REFUSALS[Tenant.State(error.state)])
        bind_request_ids(request, tenant_id=tenant.id)
        with tenant_scope(tenant.id, pinned=True), use_tenant_row(tenant):
            try:
                require_server_up()
            except ServerDown as error:
                return refuse_later(request, error)
            response = self._serve(request, tenant, settings.ROOT_URLCONF)
            return stream_in_tenant(response, tenant.id)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer an error of a view that enters the tenant itself, such as Slack's events."""
        if isinstance(error, TenantPaused | ServerDown):
            return refuse_later(request, error)
        moved = as_tenant_moving(error)
        return refuse_later(request, moved) if moved else None

    def _serve(self, request: HttpRequest, tenant: Tenant | None, urlconf: str) -> HttpResponseBase:
        request.tenant = tenant  # type: ignore[attr-defined]  # HttpRequest is open for this
        request.urlconf = urlconf
        return self.get_response(request)


def host_name(host: str) -> str:
    """Return the host of a Host header: lower case, no port, no trailing dot."""
    return split_domain_port(host)[0]


def _tenant_at(host: str) -> Tenant:
    """Return the tenant of a host, in one query.

    Raises:
        UnknownTenant: the host has no tenant.
        TenantNotServing: the tenant is suspended, or not provisioned yet.
        TenantPaused: its schema does not fit this code, or it is being moved.
    """
    domain = Domain.objects.select_related("tenant").filter(domain=host).first()
    if domain is None:
        raise UnknownTenant(f"no tenant is served at {host!r}")
    tenant: Tenant = domain.tenant
    cache_server(tenant.id, tenant.server)
    refuse_unless_serving(tenant)
    return tenant


class SessionMiddleware(middleware.SessionMiddleware):
    """Django's middleware, which ignores a session cookie with a NUL character.

    A quoted cookie may contain any character by its code. Postgres refuses texts with NUL, and the
    request would be answered with 500.
    """

    def process_request(self, request: HttpRequest) -> None:
        """Give the request its session."""
        if "\0" in request.COOKIES.get(settings.SESSION_COOKIE_NAME, ""):
            del request.COOKIES[settings.SESSION_COOKIE_NAME]
        super().process_request(request)


R = TypeVar("R", bound=HttpResponseBase)


def stream_in_tenant(response: R, tenant_id: UUID) -> R:
    """Return the response. If it is streamed, each chunk is made inside the tenant.

    A file response is not changed: it needs no database.
    """
    if (
        isinstance(response, StreamingHttpResponse)
        and not isinstance(response, FileResponse)
        and not response.is_async
    ):
        pieces = cast(Iterator[bytes], response.streaming_content)
        response.streaming_content = _chunks_in_tenant(tenant_id, iter(pieces))
    return response


def _chunks_in_tenant(tenant_id: UUID, pieces: Any) -> Iterator[bytes]:
    finished = object()
    # Ends: with the chunks of the response.
    while True:
        with tenant_scope(tenant_id, pinned=True):
            piece = next(pieces, finished)
        if piece is finished:
            return
        yield cast(bytes, piece)
