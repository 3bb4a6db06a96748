"""The address of a request: the connection's, or that of trusted proxies."""

from typing import Any

import pytest
from django.test import RequestFactory

from tenants.http import address_of, throttled_address


def address(settings: Any, trusted: int, connected: str, forwarded: str = "") -> str | None:
    settings.TRUSTED_PROXIES = trusted
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    return address_of(RequestFactory().get("/", REMOTE_ADDR=connected, headers=headers))


@pytest.mark.parametrize(
    ("trusted", "connected", "forwarded", "expected"),
    [
        (0, "198.51.100.7", "", "198.51.100.7"),
        (0, "198.51.100.7", "10.0.0.1", "198.51.100.7"),
        (1, "10.0.0.1", "203.0.113.9", "203.0.113.9"),
        (1, "10.0.0.1", "1.2.3.4, 203.0.113.9", "203.0.113.9"),
        (2, "10.0.0.1", "1.2.3.4, 203.0.113.9, 10.0.0.2", "203.0.113.9"),
        # It bypassed one of the two proxies, so they did not write its header.
        (2, "203.0.113.9", "1.2.3.4", "203.0.113.9"),
        (1, "10.0.0.1", "", "10.0.0.1"),
        (1, "10.0.0.1", "unknown", "10.0.0.1"),
        (1, "10.0.0.1", "<script>", "10.0.0.1"),
        (1, "10.0.0.1", "203.0.113.9:4711", "203.0.113.9"),
        (1, "10.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"),
        (1, "10.0.0.1", "2001:DB8:0::1", "2001:db8::1"),
        (0, "::ffff:198.51.100.7", "", "198.51.100.7"),
        (0, "fe80::1%eth0", "", "fe80::1"),
        (0, "", "", None),
    ],
)
def test_the_address(
    settings: Any, trusted: int, connected: str, forwarded: str, expected: str | None
) -> None:
    assert address(settings, trusted, connected, forwarded) == expected


def test_attempts_are_counted_by_client_address() -> None:
    assert throttled_address("198.51.100.7") == "198.51.100.7"
    assert throttled_address("2001:db8:1:2:3::4") == "2001:db8:1:2::"
    assert throttled_address(None) == "none"
