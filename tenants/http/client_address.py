"""The client's address of a request, from X-Forwarded-For as far as proxies are trusted."""

from collections.abc import Callable
from contextvars import ContextVar
from ipaddress import IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest, HttpResponse

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
