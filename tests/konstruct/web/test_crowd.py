"""The production server with many waiting clients: other requests are answered meanwhile."""

import contextlib
import json
import resource
import selectors
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import psutil
import pytest
from django.conf import settings

from konstruct.api.auth.keys import revoke_key
from konstruct.api.models import ApiKey
from konstruct.orchestrator import replies
from konstruct.orchestrator.models import HeldFor
from memory.models import Message
from tenants.context import tenant_scope
from tenants.schemas import provisioning
from tests import database
from tests.konstruct.api.live import serving
from tests.konstruct.api.seed_data import answer as record_answer
from tests.konstruct.conftest import MESSAGES, Program
from tests.konstruct.running import eventually

EVENTS = "Accept: text/event-stream"
WAITING = 1000
STREAMS = 200
HALF_OPEN = 200
UNLIMITED = {
    f"{prefix}RATE_LIMIT_{limit}": "1000000"
    for prefix in ("", "KEY_")
    for limit in ("BURST", "PER_SECOND")
}

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def url(
    environment_of_processes: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    log = tmp_path_factory.mktemp("served") / "log"
    with serving({**environment_of_processes, **UNLIMITED}, log) as address:
        yield address


@pytest.fixture
def crowd() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def head(program: Program, method: str, path: str, *more: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {program.key}"]
    return "\r\n".join([*lines, *more]).encode() + b"\r\n"


def client(crowd: contextlib.ExitStack, url: str, sent: bytes) -> socket.socket:
    there = urlsplit(url)
    opened = crowd.enter_context(socket.create_connection((there.hostname, there.port), 60))
    opened.sendall(sent)
    return opened


def half_requests(program: Program) -> list[bytes]:
    json_body = ("Content-Type: application/json", "Content-Length: 1000")
    return [
        b"",
        b"GET / HTTP/1.1\r\nHost: local",
        head(program, "GET", MESSAGES),
        head(program, "POST", MESSAGES, *json_body) + b'\r\n{"agent"',
        head(program, "POST", MESSAGES, *json_body, "Expect: 100-continue") + b"\r\n",
        head(program, "POST", MESSAGES, "Transfer-Encoding: chunked") + b"\r\n5\r\n{",
        head(program, "GET", "/api/schema/") + b"\r\n",  # and the response is not read
    ]


def send(url: str, program: Program) -> UUID:
    body = {"agent": "ada", "user_id": "maria", "content": "Hello"}
    sent = httpx.post(url + MESSAGES, json=body, headers=key(program), timeout=60)
    assert sent.status_code == 202, sent.text
    return UUID(sent.json()["id"])


def key(program: Program) -> dict[str, str]:
    return {"Authorization": f"Bearer {program.key}"}


def answer(program: Program, message_id: UUID, content: str) -> None:
    """Answer as a worker does, and announce it."""
    record_answer(program, str(message_id), content)
    replies.announce(program.tenant.id, message_id)


def response_of(client: socket.socket) -> tuple[int, dict[str, object]]:
    """Read a response with a Content-Length."""
    client.settimeout(60)
    read = b""
    while b"\r\n\r\n" not in read:
        read += client.recv(65536)
    header, _, body = read.partition(b"\r\n\r\n")
    (length,) = (
        int(line.partition(b":")[2])
        for line in header.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    )
    while len(body) < length:
        body += client.recv(65536)
    return int(header.split()[1]), json.loads(body)


def worker_threads() -> int:
    """Return the highest number of threads of a web process."""
    processes = psutil.Process().children(recursive=True)
    return max(
        process.num_threads() for process in processes if "gunicorn" in " ".join(process.cmdline())
    )


def test_waiting_requests_take_no_thread(
    url: str, program_a: Program, crowd: contextlib.ExitStack
) -> None:
    message_id = send(url, program_a)
    before = worker_threads()
    halves = half_requests(program_a)
    for number in range(HALF_OPEN):
        client(crowd, url, halves[number % len(halves)])
    request = head(program_a, "GET", f"{MESSAGES}{message_id}/?wait=60") + b"\r\n"
    waiters = [client(crowd, url, request) for _ in range(WAITING)]
    assert httpx.get(f"{url}/health/live", timeout=60).json() == {"status": "ok"}
    assert httpx.get(f"{url}/health/ready", timeout=60).status_code == 200
    another = send(url, program_a)
    assert httpx.get(f"{url}{MESSAGES}{another}/", headers=key(program_a), timeout=60).is_success
    with selectors.DefaultSelector() as answered:
        for waiter in waiters:
            answered.register(waiter, selectors.EVENT_READ)
        assert answered.select(0) == []  # all of them were overtaken
    assert worker_threads() <= before + settings.WEB_THREADS
    answer(program_a, message_id, "Here I am.")
    for waiter in waiters:
        status, document = response_of(waiter)
        assert (status, document["status"]) == (200, "answered")
        reply = document["reply"]
        assert isinstance(reply, dict)
        assert reply["content"] == "Here I am."


def test_a_reply_that_is_waited_for_has_all_that_a_response_has(
    url: str, program_a: Program, program_b: Program
) -> None:
    message_id = send(url, program_a)
    with httpx.Client(headers={"X-Request-ID": "mine-1"}, timeout=60) as program:
        path = f"{url}{MESSAGES}{message_id}/"
        late = program.get(f"{path}?wait=0.2", headers=key(program_a))
        assert (late.status_code, late.json()["status"]) == (200, "queued")
        assert program.get(f"{path}?wait=60", headers=key(program_b)).status_code == 404
        answer(program_a, message_id, "Yes. " * 1000)
        done = program.get(f"{path}?wait=60", headers=key(program_a))
    assert done.json()["reply"]["content"] == "Yes. " * 1000
    assert done.headers["X-Request-ID"] == "mine-1"
    assert done.headers["Content-Encoding"] == "gzip"
    assert "RateLimit-Remaining" in done.headers


def test_a_message_with_a_person_is_waited_for(
    url: str, program_a: Program, crowd: contextlib.ExitStack
) -> None:
    message_id = send(url, program_a)
    with tenant_scope(program_a.tenant.id):
        replies.REPLIES.hold(message_id, HeldFor.PERSON)
    sent = head(program_a, "GET", f"{MESSAGES}{message_id}/?wait=60")
    waiting = client(crowd, url, sent + b"\r\n")
    time.sleep(0.5)  # the request has begun to wait, or has been answered too early
    answer(program_a, message_id, "I am a person.")
    status, document = response_of(waiting)
    assert (status, document["status"]) == (200, "answered")


@pytest.mark.long
def test_process_exit_ends_all_waiting_requests(
    program_a: Program,
    process_environment: dict[str, str],
    tmp_path: Path,
    crowd: contextlib.ExitStack,
) -> None:
    log = tmp_path / "log"
    with serving({**process_environment, **UNLIMITED}, log) as url:
        body = json.dumps({"agent": "ada", "user_id": "maria", "content": "Hello"})
        sent = head(program_a, "POST", f"{MESSAGES}?wait=60", "Content-Type: application/json")
        sent += f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        waiter = client(crowd, url, sent)
        with tenant_scope(program_a.tenant.id):
            eventually(Message.objects.exists)
        health = client(crowd, url, head(program_a, "GET", f"{MESSAGES}?limit=1") + b"\r\n")
        assert response_of(health)[0] == 200
    status, document = response_of(waiter)
    assert (status, document["status"]) == (202, "queued")


@pytest.mark.parametrize("chunked", [True, False])
def test_body_limit_applies_with_and_without_content_length(
    url: str, program_a: Program, chunked: bool
) -> None:
    def pieces(count: int) -> Iterator[bytes]:
        yield b'{"agent": "ada", "user_id": "maria", "content": "'
        yield from [b"x" * 1000] * count
        yield b'"}'

    for count, status in ((1, 202), (settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 1000, 413)):
        body = pieces(count) if chunked else b"".join(pieces(count))
        headers = {**key(program_a), "Content-Type": "application/json"}
        response = httpx.post(url + MESSAGES, content=body, headers=headers, timeout=60)
        assert response.status_code == status, response.text
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.json()["errors"][0]["field"] == "body"


@pytest.mark.long
def test_idle_streams_take_no_thread(
    url: str, program_a: Program, crowd: contextlib.ExitStack
) -> None:
    before, streams = worker_threads(), dict[str, socket.socket]()
    for number in range(STREAMS):
        turns = [{"role": "user", "content": f"Message {number}"}]
        body = json.dumps({"model": "ada", "user": "maria", "messages": turns, "stream": True})
        sent = head(program_a, "POST", "/v1/chat/completions", "Content-Type: application/json")
        sent += f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        streams[f"Message {number}"] = client(crowd, url, sent)
    for stream in streams.values():
        read_up_to(stream, b'"role": "assistant"')
    assert httpx.get(f"{url}/health/live", timeout=60).json() == {"status": "ok"}
    assert worker_threads() <= before + settings.WEB_THREADS
    with tenant_scope(program_a.tenant.id):
        messages = list(Message.objects.values_list("id", "content"))
    assert len(messages) == STREAMS
    for message_id, content in messages:
        with replies.stream_reply(program_a.tenant.id, message_id, 1) as publish:
            assert publish is not None
            publish(f"You said: {content}")
    for content, stream in streams.items():
        read_up_to(stream, f'"You said: {content}"'.encode())
    assert worker_threads() <= before + settings.WEB_THREADS
    for message_id, content in messages:
        answer(program_a, message_id, f"You said: {content}.")
    for stream in streams.values():
        rest = read_up_to(stream, b"data: [DONE]\n\n")
        assert b'{"content": "."}' in rest
        assert b"You said" not in rest


def test_open_streams_end_when_their_key_is_revoked_or_their_tenant_suspended(
    url: str, program_a: Program, program_b: Program, crowd: contextlib.ExitStack
) -> None:
    messages = [{"role": "user", "content": "Hello"}]
    message = json.dumps({"agent": "ada", "user_id": "maria", "content": "Hello"})
    chat = json.dumps({"model": "ada", "user": "bob", "messages": messages, "stream": True})
    requests = (
        (f"{MESSAGES}?wait=60", message, b"event: accepted", b'"status": 401'),
        ("/v1/chat/completions", chat, b'"role": "assistant"', b'"code": "invalid_api_key"'),
    )
    streams = []
    for program in (program_a, program_b):
        for path, body, opening, refusal in requests:
            sent = head(program, "POST", path, "Content-Type: application/json", EVENTS)
            sent += f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
            stream = client(crowd, url, sent)
            read_up_to(stream, opening)
            streams.append((stream, refusal))
    with tenant_scope(program_a.tenant.id):
        revoke_key(ApiKey.objects.get().pk)
    with database.as_owner():
        provisioning.suspend_tenant(program_b.tenant)
    for stream, refusal in streams:
        assert refusal in read_up_to(stream, b"\r\n0\r\n\r\n")


def test_events_are_streamed_as_they_happen(
    url: str, program_a: Program, program_b: Program, crowd: contextlib.ExitStack
) -> None:
    """Each tenant gets its events; the end of a key is the end of its stream."""
    sent = head(program_a, "GET", "/api/v1/events/", EVENTS)
    stream = client(crowd, url, sent + b"\r\n")
    read_up_to(stream, b": waiting")
    for program, content in ((program_b, "Bob sings."), (program_a, "Maria sings.")):
        fact = {"agent": "ada", "user_id": "maria", "content": content}
        assert program.post("/api/v1/facts/", fact).status_code == 201
    read = read_up_to(stream, b"event: fact.active")
    assert read.count(b"id: ") == 1
    with tenant_scope(program_a.tenant.id):
        revoke_key(ApiKey.objects.get().pk)
    assert b'"status": 401' in read_up_to(stream, b"\r\n0\r\n\r\n")


def read_up_to(client: socket.socket, expected: bytes) -> bytes:
    """Read until the data contains this."""
    client.settimeout(60)
    read = b""
    while expected not in read:
        piece = client.recv(65536)
        assert piece, read
        read += piece
    return read
