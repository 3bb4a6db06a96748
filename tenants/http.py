"""Middleware: the client's address and the tenant of a request, sessions, refusals."""

import logging
import sys
from collections.abc import Callable
from contextvars import ContextVar
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from django.conf import settings
from django.contrib.sessions import middleware
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.http.request import split_domain_port
from django.template.loader import render_to_string
from django.utils.translation import gettext, gettext_lazy as _
from django.views import defaults
from psycopg.errors import QueryCanceled

from tenants import outages, servers, serving, traces
from tenants.context import connection, leave_tenant, require_server_up, tenant_scope
from tenants.exceptions import TenantNotServing, TenantPaused, UnknownTenant
from tenants.models import Domain, Tenant

logger = logging.getLogger(__name__)

_current: ContextVar[str | None] = ContextVar("client_address", default=None)
# A client with an IPv6 address usually has its whole /64 network.
IPV6_NETWORK_BITS = 64


class ClientAddressMiddleware:
    """Determines the client's address once for each request, for the access log and limits."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        token = _current.set(address_of(request))
        try:
            return self.get_response(request)
        finally:
            _current.reset(token)


def current_address() -> str | None:
    """Return the client's address of the current request; None outside of requests."""
    return _current.get()


def address_of(request: HttpRequest) -> str | None:
    """Return the client's address; None if there is none (a Unix socket).

    Each of the TRUSTED_PROXIES appends the address of its client to X-Forwarded-For. Earlier
    entries come from the client, can hold anything, and are ignored. A request with fewer entries
    did not pass all proxies; it has the address of its connection.
    """
    forwarded = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",")]
    trusted = settings.TRUSTED_PROXIES
    connected = request.META.get("REMOTE_ADDR", "")
    given = forwarded[-trusted] if 0 < trusted <= len(forwarded) else connected
    return _as_address(given) or _as_address(connected)


def throttled_address(address: str | None) -> str:
    """Return the address by which attempts are counted; for IPv6 the /64 network."""
    if address is None:
        return "none"
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, IPV6_NETWORK_BITS), strict=False).network_address)
    return address


def _as_address(text: str) -> str | None:
    """Return a normalized address without a port; an IPv4 address in IPv6 is unwrapped."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        parsed = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return str(mapped or parsed)


def refuse(
    request: HttpRequest, status: HTTPStatus, sentence: str, remedy: str = ""
) -> HttpResponse:
    """Answer a request before a view does. The API turns the answer into a problem document.

    A browser gets a page with the remedy; other programs get the sentence alone.
    """
    if "text/html" in request.headers.get("Accept", ""):
        context = {"status": status.value, "title": sentence.rstrip("."), "sentence": remedy}
        return HttpResponse(render_to_string("konstruct/error.html", context), status=status)
    return HttpResponse(f"{sentence}\n", status=status, content_type="text/plain; charset=utf-8")


def refuse_later(request: HttpRequest, error: Exception) -> HttpResponse:
    """Answer 503 with Retry-After to a request that can be served again soon.

    Args:
        error: the tenant that is paused, or the outage (tenants/outages.py).
    """
    note_outage(request, error)
    known = error if isinstance(error, TenantPaused | outages.ServerDown) else outages.ServerDown
    response = refuse(request, HTTPStatus.SERVICE_UNAVAILABLE, known.public)
    response.headers["Retry-After"] = str(known.retry_after)
    leave_log_to_request(request, response)
    return response


def note_outage(request: HttpRequest, error: Exception) -> None:
    """Log one line for a request that is refused with 503, with the reason.

    The web process adds the reason to the line that it logs for each request, see
    konstruct/web/application.py. For other servers, which log no such line, this function logs one.
    """
    reason = outages.outage_reason(error)
    request.outage = reason  # type: ignore[attr-defined]  # HttpRequest is open for this
    if not getattr(request, "waits_in_event_loop", False):
        logger.error("%s %s 503: %s", request.method, traces.logged_path(request), reason)


def leave_log_to_request(request: HttpRequest, response: HttpResponse) -> None:
    """Keep Django from logging a response whose request `note_outage` has logged."""
    if hasattr(request, "outage"):
        response._has_been_logged = True  # type: ignore[attr-defined]  # Django looks at it


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer a request that failed: 503 for an outage or a slow statement, otherwise 500.

    This is `handler500` of the URL configurations: Django calls it for the errors of middleware
    and of views.
    """
    error = sys.exc_info()[1]
    if isinstance(getattr(error, "__cause__", None), QueryCanceled):
        return refuse(
            request,
            HTTPStatus.SERVICE_UNAVAILABLE,
            gettext("Reading this took too long, and was stopped."),
            gettext("Choose fewer rows, such as those of one user or of a few days."),
        )
    if isinstance(error, Exception) and outages.is_outage(error):
        return refuse_later(request, error)
    return defaults.server_error(request)


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
_TO_BE_DELETED: Any = _(
    "It is to be deleted with its data. Until then its operator can restore it."
)


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
            status, text, remedy = _REFUSALS[Tenant.State(error.state)]
            if error.is_to_be_deleted:
                remedy = _TO_BE_DELETED
            return refuse(request, status, text, remedy)
        traces.bind_request_ids(request, tenant_id=tenant.id)
        with tenant_scope(tenant.id):
            connection.set_tenant(tenant)
            try:
                require_server_up()
            except outages.ServerDown as error:
                return refuse_later(request, error)
            return self._serve(request, tenant, settings.ROOT_URLCONF)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer an error of a view that enters the tenant itself, such as Slack's events."""
        if isinstance(error, TenantPaused | outages.ServerDown):
            return refuse_later(request, error)
        moved = serving.as_tenant_moving(error)
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
    servers.cache_server(tenant.id, tenant.server)
    serving.refuse_unless_serving(tenant)
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
