"""Calls of language models end at their deadline, whatever the server and the network do."""

import contextlib
import itertools
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest

from konstruct import outgoing
from konstruct.llm import client
from konstruct.llm.completions import CompletionRequest, LLMReplyInvalid, LLMTimeout, LLMUnavailable
from tests.servers.llm import Answer, LLMServer
from tests.servers.tls import tls_in_front

REQUEST = CompletionRequest([{"role": "user", "content": "Hi"}], model="", tier="fast")
# More than the buffers of two sockets.
LARGE_REQUEST = CompletionRequest(
    [{"role": "user", "content": "x" * 6_000_000}], model="", tier="fast"
)
HEADERS = b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def ask(url: str, request: CompletionRequest = REQUEST, timeout: float = 0.1) -> str:
    """Ask for a streamed answer, without a pause between attempts."""
    model = client.HttpLanguageModel(url, api="openai", timeout=timeout, sleep=lambda seconds: None)
    return model.complete(request, lambda piece: None).text


@contextlib.contextmanager
def serving(serve: Callable[[socket.socket, threading.Event], object]) -> Iterator[str]:
    """Call a function with the first connection, and an event that is set after the block."""
    stopped = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            peer, _ = server.accept()
            with peer, contextlib.suppress(OSError):
                serve(peer, stopped)
                stopped.wait()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            stopped.set()
            socket.create_connection(server.getsockname()).close()  # if there was none
            thread.join()


@pytest.fixture
def new_client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], openai.OpenAI]]:
    """Let this test use another client, made with the current environment."""
    create = client._client.__wrapped__
    with contextlib.ExitStack() as stack:

        def make() -> openai.OpenAI:
            made = stack.enter_context(create(os.getpid(), is_guarded=False))
            monkeypatch.setattr(client, "_client", lambda process_id, is_guarded: made)
            return made

        yield make


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        (b"", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b""),
        (HEADERS + b"\r\n", b""),
        (HEADERS, b"X-Filler: 1\r\n"),
        (HEADERS + b"\r\n", b"x"),
        (STREAM, b""),
        (STREAM, b": ping\n\n"),
        (STREAM, b'data: {"choices": [{"delta": {"content": "x"}}]}\n\n'),
    ],
    ids=["silence", "100", "headers only", "headers", "body", "no event", "pings", "text"],
)
def test_an_answer_that_does_not_end_is_a_timeout(first: bytes, rest: bytes) -> None:
    def serve(peer: socket.socket, stopped: threading.Event) -> None:
        peer.sendall(first)
        for byte in itertools.cycle(rest):
            if stopped.wait(0.01):
                return
            peer.sendall(bytes([byte]))

    with serving(serve) as url, pytest.raises(LLMTimeout, match=r"within 0\.1 seconds"):
        ask(url)


@pytest.mark.parametrize("size", [0, 4096])
def test_a_server_that_does_not_read_the_request_in_time_is_a_timeout(size: int) -> None:
    def serve(peer: socket.socket, stopped: threading.Event) -> None:
        while size and not stopped.wait(0.01):
            peer.recv(size)

    with serving(serve) as url, pytest.raises(LLMTimeout):
        ask(url, LARGE_REQUEST, timeout=0.5)


def test_a_connection_that_is_not_accepted_is_tried_again_until_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as queue:
        for _ in range(3):
            waiting = queue.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        with pytest.raises(LLMTimeout):
            ask(url)
        monkeypatch.setattr(client, "CONNECT_SECONDS", 0.01)
        with pytest.raises(LLMUnavailable, match="cannot be reached") as caught:
            ask(url, timeout=60)
    assert caught.value.requests == client.MAX_ATTEMPTS


def test_a_name_that_is_not_resolved_in_time_is_a_timeout(
    llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve, stopped, closed = socket.getaddrinfo, threading.Event(), threading.Event()

    def slow(host: Any, *args: Any, **options: Any) -> Any:
        if host == "llm.test":
            stopped.wait()
            return resolve("127.0.0.1", *args, **options)
        return resolve(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    close = outgoing._close
    monkeypatch.setattr(outgoing, "_close", lambda opening: (close(opening), closed.set()))
    with pytest.raises(LLMTimeout):
        ask(llm_server.url.replace("127.0.0.1", "llm.test"))
    stopped.set()
    assert closed.wait(60)
    assert llm_server.requests == []


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
def test_a_hundred_megabytes_are_not_read(
    llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch, status: int, content_type: str
) -> None:
    monkeypatch.setattr(client, "BYTES_PER_STREAMED_CHARACTER", 4)
    headers = {"Content-Type": content_type}
    llm_server.answers = [Answer("x" * 100_000_000, status, headers)]
    with pytest.raises(LLMReplyInvalid, match="too long"):
        ask(llm_server.url, timeout=60)


def test_the_environment_adds_a_proxy_and_no_header(
    llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch, new_client: Callable[[], openai.OpenAI]
) -> None:
    """openai's SDK reads an organisation and headers from the environment."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Other: 1\nAuthorization: Bearer other")
    monkeypatch.setenv("HTTP_PROXY", urlsplit(llm_server.url).netloc)
    new_client()
    assert ask("http://llm.test/v1", timeout=60) == "Noted."
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert ask(llm_server.url, timeout=60) == "Noted."
    proxied, direct = llm_server.requests
    assert (proxied.path, direct.path) == (
        "http://llm.test/v1/chat/completions",
        "/v1/chat/completions",
    )
    assert {name.lower() for name in direct.headers} == {
        *("host", "user-agent", "accept", "accept-encoding", "content-type", "content-length"),
    }


def test_tls_is_verified_and_ends_at_the_deadline(
    llm_server: LLMServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    new_client: Callable[[], openai.OpenAI],
) -> None:
    with tls_in_front(llm_server._server.server_port, tmp_path) as port:
        with pytest.raises(LLMUnavailable, match="cannot be reached") as caught:
            ask(f"https://localhost:{port}", timeout=60)
        assert "CERTIFICATE_VERIFY_FAILED" in caught.value.detail
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        with new_client():
            assert ask(f"https://localhost:{port}", timeout=60) == "Noted."
        new_client()
        llm_server.default = Answer({"content": "late"}, wait=True)
        with pytest.raises(LLMTimeout):
            ask(f"https://localhost:{port}")
    silence = serving(lambda peer, stopped: None)
    with silence as url, pytest.raises(LLMTimeout):  # in the handshake
        ask(url.replace("http", "https"))
