"""Connections that end at a deadline, and requests to addresses that a tenant's team chose.

The latter reach no private, loopback or link-local address, unless the operator allows the host by
WEBHOOK_HOSTS: the address that the name resolves to is checked, and the connection is opened to
that address. Redirects are not followed. A request ends at its deadline.

The timeouts of httpx are for each read, so a server that sends a byte from time to time could hold
a thread for hours. Here the timeouts of a request are times of `time.monotonic`: each operation of
its connection gets the time that is left. The lookup of a host's name has no timeout, so a
connection is opened in another thread.
"""

import ipaddress
import socket
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

import httpcore
import httpx
from django.conf import settings

from tenants.context import release_connections
from tenants.exceptions import KonstructError

# The context of all requests: reading the authorities takes milliseconds.
_ssl_context: Final = cache(httpx.create_ssl_context)
# A request is written in parts of this size, each in the time that is left.
WRITE_BYTES: Final = 16 * 1024
PORTS: Final = {"https": 443, "http": 80}
NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
# IPv6 has no other addresses of the public internet. Python 3.11 counts some of these as global.
UNICAST: Final = ipaddress.ip_network("2000::/3")
NOT_PUBLIC: Final = (ipaddress.ip_network("192.0.0.0/24"), ipaddress.ip_network("2001::/23"))


class AddressRefused(KonstructError):
    """No request is sent to this address; the message has the reason."""


class AddressUnreachable(KonstructError):
    """The host was not found or not reached, or did not answer in time."""


def check_url(url: str) -> None:
    """Refuse a URL that no request is sent to, without a lookup of its host.

    Raises:
        AddressRefused: the URL has another scheme than https, user information, a fragment, no host
            or the address of a private network; the message has the reason.
    """
    try:
        parts = urlsplit(url)
        host, _ = httpx.URL(url).raw_host.decode(), parts.port
    except (ValueError, httpx.InvalidURL):
        raise AddressRefused(f"{url[:200]!r} is not a URL.") from None
    if not host or any(character.isspace() for character in url):
        raise AddressRefused(f"{url[:200]!r} is not a URL with a host.")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise AddressRefused("A URL with a user, a password or a fragment is refused.")
    if is_allowed(host):
        if parts.scheme not in PORTS:
            raise AddressRefused("The URL must begin with https:// or http://.")
        return
    if parts.scheme != "https":
        raise AddressRefused("The URL must begin with https://.")
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return
    refuse_private(host, str(address))


def is_allowed(host: str) -> bool:
    """Return whether the operator allows requests to this host, also in a private network."""
    return host.lower().rstrip(".") in settings.WEBHOOK_HOSTS


def refuse_private(host: str, address: str) -> None:
    """Raise AddressRefused if the address is not one of the public internet."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo or (None, None))[1]
        if inner is None and found in NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        found = inner or found
    is_public = found.is_global and not found.is_multicast
    if found.version == 6:
        is_public = is_public and found in UNICAST
    if not is_public or any(found in network for network in NOT_PUBLIC):
        named = address if host == address else f"{host} ({address})"
        raise AddressRefused(
            f"{named} is no address of the public internet: ask the operator to"
            " allow the host (WEBHOOK_HOSTS)."
        )


class Network(httpcore.SyncBackend):
    """Opens connections. All timeouts are times of `time.monotonic`."""

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *args: Any, **options: Any
    ) -> httpcore.NetworkStream:
        seconds = _seconds_until(timeout)
        executor = ThreadPoolExecutor(1, "connect")
        opening = executor.submit(self.open, host, port, seconds, *args, **options)
        executor.shutdown(wait=False)
        try:
            return _Connection(opening.result(seconds))
        except TimeoutError:
            opening.add_done_callback(_close)
            raise httpcore.ConnectTimeout("timed out") from None

    def open(self, host: str, port: int, *args: Any, **options: Any) -> httpcore.NetworkStream:
        """Open a connection, with a timeout in seconds. It runs in a separate thread."""
        return super().connect_tcp(host, port, *args, **options)


def _close(opening: Future[httpcore.NetworkStream]) -> None:
    """Close a connection that was opened too late."""
    if opening.exception() is None:
        opening.result().close()


class _Connection(httpcore.NetworkStream):
    """A connection. All timeouts are times of `time.monotonic`."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _seconds_until(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), WRITE_BYTES):
            self._stream.write(buffer[start : start + WRITE_BYTES], _seconds_until(timeout))

    def start_tls(self, ssl_context: Any, server_hostname: Any = None, timeout: Any = None) -> Any:
        seconds = max(0.001, timeout - time.monotonic())  # it closes the connection if it fails
        return _Connection(self._stream.start_tls(ssl_context, server_hostname, seconds))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def close(self) -> None:
        self._stream.close()


def _seconds_until(deadline: float | None) -> float:
    """Return the time that is left. Raises httpcore.ReadTimeout if there is none."""
    seconds = (deadline or 0.0) - time.monotonic()
    if seconds <= 0:
        raise httpcore.ReadTimeout("timed out")
    return seconds


class PublicNetwork(Network):
    """Opens connections to public addresses and to allowed hosts."""

    def open(self, host: str, port: int, *args: Any, **options: Any) -> httpcore.NetworkStream:
        addresses = [host]
        if not is_allowed(host):
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
            for address in addresses:
                refuse_private(host, address)
        return super().open(addresses[0], port, *args, **options)


def post(url: str, body: bytes, headers: dict[str, str], *, seconds: float) -> int:
    """Send a POST request, and return the status of the response. Its body is not read.

    Call it outside of a transaction.

    Args:
        url: as `check_url` accepts it.
        body: of the request.
        headers: beside the host and the length.
        seconds: time of the whole request.

    Raises:
        AddressRefused: the URL or the address of its host is refused.
        AddressUnreachable: the host was not found or not reached, or did not answer in time.
    """
    check_url(url)
    deadline = time.monotonic() + seconds
    timeouts = dict.fromkeys(("connect", "read", "write", "pool"), deadline)
    try:
        with (
            release_connections(),
            httpcore.ConnectionPool(
                ssl_context=_ssl_context(),
                max_keepalive_connections=0,
                network_backend=PublicNetwork(),
            ) as pool,
            pool.stream(
                "POST",
                str(httpx.URL(url)),
                headers=list(headers.items()),
                content=body,
                extensions={"timeout": timeouts},
            ) as response,
        ):
            return response.status
    except (httpcore.TimeoutException, TimeoutError):
        raise AddressUnreachable(f"No response within {seconds:g} seconds.") from None
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError, UnicodeError) as error:
        unreachable = AddressUnreachable(f"It was not reached ({type(error).__name__}).")
        unreachable.detail = str(error)
        raise unreachable from error
