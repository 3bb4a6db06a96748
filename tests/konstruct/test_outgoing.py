"""Requests to addresses that tenants chose, webhooks and language models: none reaches a private
network.
"""

import socket
from typing import Any

import pytest

from konstruct.llm.client import HttpLanguageModel
from konstruct.llm.completions import CompletionRequest, LLMRefused
from konstruct.outgoing import AddressRefused, AddressUnreachable, check_url, post
from tests.servers.llm import Answer, LLMServer

PRIVATE = (
    *("127.0.0.1", "127.8.9.1", "10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254"),
    *("0.0.0.1", "100.64.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "192.0.0.8"),
    *("::1", "::", "fe80::1", "fc00::1", "fd12::1", "ff02::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"),
    *("64:ff9b:1::7f00:1", "fe80::1%lo", "::127.0.0.1"),
)


def resolve_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Let every name resolve to these addresses; return the list of looked up names."""
    names: list[str] = []

    def getaddrinfo(host: str, port: int, *args: Any, **options: Any) -> list[Any]:
        names.append(host)
        return [
            (socket.AF_INET6 if ":" in a else socket.AF_INET, 1, 6, "", (a, port))
            for a in addresses
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return names


def ask(url: str) -> str:
    """Ask a language model of a tenant."""
    model = HttpLanguageModel(url, api="openai", timeout=5, is_guarded=True)
    prompt = [{"role": "user", "content": "Hello"}]
    return model.complete(CompletionRequest(prompt, model="m", tier="fast")).text


@pytest.mark.parametrize("address", PRIVATE)
def test_names_of_private_addresses_are_refused(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_to(monkeypatch, "93.184.215.14", address)
    with pytest.raises(AddressRefused, match="WEBHOOK_HOSTS"):
        post("https://hooks.example.com/", b"{}", {}, seconds=5)
    with pytest.raises(LLMRefused, match="WEBHOOK_HOSTS"):
        ask("https://llm.example.com/v1")


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_refused_when_they_are_stored(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(AddressRefused):
        check_url(f"https://{host}/")
    with pytest.raises(LLMRefused, match="address is refused"):
        ask(f"https://{host}/v1")


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://example.com/",
            "ftp://example.com/",
            "file:///etc/passwd",
            "gopher://example.com",
        ),
        *("https://", "https:///path", "example.com", "https://user@example.com/", "//example.com"),
        *("https://user:pass@example.com/", "https://example.com:99999/", "https://example.com/#x"),
        *("https://exa mple.com/", "https://example.com/\r\nHost: 127.0.0.1", "https://[::1", ""),
        *("https://0177.0.0.1/", "https://\u24dbocalhost/", "https://\u2460\u2461\u2466.0.0.1/"),
        *("https://127\u30020\u30020\u30021/", "https://ex\u200bample.com/"),
    ],
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(AddressRefused):
        check_url(url)
    with pytest.raises(LLMRefused, match="address is refused"):
        ask(url)


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "127.1", "localhost"])
def test_other_spellings_of_loopback_are_refused(host: str) -> None:
    with pytest.raises((AddressRefused, AddressUnreachable)):
        post(f"https://{host}/", b"{}", {}, seconds=5)


def test_a_name_is_looked_up_once_and_its_checked_address_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connected = []

    def connect(address: Any, *args: Any, **options: Any) -> Any:
        connected.append(address)
        raise ConnectionRefusedError

    names = resolve_to(monkeypatch, "93.184.215.14")
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(AddressUnreachable, match="not reached"):
        post("https://hooks.ex\xe4mple.com/\xfc", b"{}", {}, seconds=5)
    assert (names, connected) == (["hooks.xn--exmple-cua.com"], [("93.184.215.14", 443)])


def test_redirects_are_not_followed(settings: Any) -> None:
    settings.WEBHOOK_HOSTS = ["127.0.0.1"]
    with LLMServer() as inside, LLMServer() as server:
        server.default = Answer("", 302, {"Location": inside.url})
        assert post(server.url, b"{}", {}, seconds=5) == 302
        with pytest.raises(LLMRefused, match="HTTP 302"):
            ask(server.url)
    assert inside.requests == []


def test_a_receiver_that_answers_late_or_never_ends_at_the_deadline(settings: Any) -> None:
    settings.WEBHOOK_HOSTS = ["127.0.0.1"]
    with LLMServer() as server:
        server.default = Answer("", wait=True)
        with pytest.raises(AddressUnreachable, match=r"within 0\.5 seconds"):
            post(server.url, b"{}", {}, seconds=0.5)
    closed = server.url
    with pytest.raises(AddressUnreachable, match="not reached"):
        post(closed, b"{}", {}, seconds=5)
