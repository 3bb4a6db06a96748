"""The address that a request comes from, believed only as far as proxies are trusted."""

from collections.abc import Callable
from contextvars import ContextVar
from ipaddress import IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest, HttpResponse

_current: ContextVar[str | None] = ContextVar("client_address", default=None)
# Whoever has an IPv6 address has all of its /64 network.
IPV6_NETWORK_BITS = 64


class ClientAddressMiddleware:
    """Finds the address once, for everything that is recorded and throttled in the request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        token = _current.set(address_of(request))
        try:
            return self.get_response(request)
        finally:
            _current.reset(token)


def current_address() -> str | None:
    """Return the address of the request that is being answered; None outside of requests."""
    return _current.get()


def address_of(request: HttpRequest) -> str | None:
    """Return the address of whoever sent the request, None if there is none (a Unix socket).

    Each of the TRUSTED_PROXIES adds to X-Forwarded-For the address that it was called from, at the
    end. What stands before those was sent by the caller, who can write anything: it is not read. A
    request with fewer entries did not come through all proxies, and is known by its connection.
    """
    forwarded = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",")]
    trusted = settings.TRUSTED_PROXIES
    connected = request.META.get("REMOTE_ADDR", "")
    given = forwarded[-trusted] if 0 < trusted <= len(forwarded) else connected
    return _as_address(given) or _as_address(connected)


def throttled_address(address: str | None) -> str:
    """Return what attempts are counted by: the address, of IPv6 its network."""
    if address is None:
        return "none"
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, IPV6_NETWORK_BITS), strict=False).network_address)
    return address


def _as_address(text: str) -> str | None:
    """Return an address in its usual form; a port is cut off, an IPv4 one in IPv6 is unwrapped."""
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
