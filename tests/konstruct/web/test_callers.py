"""A share of the threads needs a verified key or session."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import nullcontext
from io import BytesIO
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.test import Client

from konstruct.api.auth.keys import new_key, parse_key, revoke_key
from konstruct.api.models import ApiKey
from konstruct.orchestrator.replies.partial_reply import ReplyChunk
from konstruct.orchestrator.replies.reply_wait import StreamingResponse
from konstruct.web import callers
from konstruct.web.callers import Callers, TooManyUnverified
from konstruct.web.handler import Handler
from konstruct.web.pool import Share
from konstruct.web.replies import WatchedReply, stream_reply
from tenants.context import tenant_scope
from tenants.models import Tenant
from tenants.schemas import provisioning
from tests import database
from tests.konstruct.conftest import MESSAGES, Program

UNVERIFIED_ADDRESS = "203.0.113.9"
OTHER_ADDRESS = "198.51.100.7"


def scope(
    *,
    address: str = UNVERIFIED_ADDRESS,
    path: str = MESSAGES,
    host: str = "localhost",
    **headers: str,
) -> dict[str, Any]:
    """Return the ASGI scope of a GET."""
    sent = {"host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(),
        "query_string": b"", "root_path": "", "http_version": "1.1", "client": (address, 4711),
        "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
    }  # fmt: skip


def bearer(key: object) -> str:
    return f"Bearer {key}"


class Clock:
    """A clock with manual time."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Verifying:
    """Threads that verify, and the shares of their requests."""

    def __init__(self) -> None:
        self.shares: list[Share] = []
        self.clock = Clock()
        self.callers = Callers(self.in_thread, self.clock)

    async def in_thread(self, share: Share, verify: Callable[[], str | None]) -> str | None:
        self.shares.append(share)

        def call() -> str | None:
            try:
                return verify()
            finally:
                connections.close_all()

        return await asyncio.to_thread(call)

    async def share(self, body: bytes = b"", **of: str) -> Share:
        return await self.callers.share_of(ASGIRequest(scope(**of), BytesIO(body)))


def run(test: Callable[[Verifying], Awaitable[None]]) -> None:
    async def main() -> None:
        await asyncio.wait_for(test(Verifying()), 60)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("address", "counted_by"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::"),
    ],
)
def test_unauthenticated_callers_are_counted_by_address_or_ipv6_network(
    address: str, counted_by: str
) -> None:
    async def test(at: Verifying) -> None:
        assert (await at.share(address=address)).name == f"{counted_by} none"

    run(test)


@pytest.mark.django_db(transaction=True)
def test_a_key_that_is_verified_earns_its_tenants_share(program_a: Program) -> None:
    of_tenant = Share(program_a.tenant.id.hex, is_verified=True)

    async def test(at: Verifying) -> None:
        for host in ("localhost", "LOCALHOST:8000", "any.example"):
            assert await at.share(authorization=bearer(program_a.key), host=host) == of_tenant
        assert at.shares == [Share(f"{UNVERIFIED_ADDRESS} key", is_verified=False)]

    run(test)


@pytest.mark.django_db(transaction=True)
def test_a_session_earns_a_share_on_its_tenants_hosts_alone(tenant_a: Tenant) -> None:
    with tenant_scope(tenant_a.id):
        user = get_user_model().objects.create_user("ann", password="x", is_staff=True)
        client = Client(headers={"host": "tenant-a.localhost"})
        client.force_login(user)
    cookie = f"sessionid={client.cookies['sessionid'].value}"
    of_tenant = Share(tenant_a.id.hex, is_verified=True)

    async def test(at: Verifying) -> None:
        for _ in range(2):
            assert await at.share(host="tenant-a.localhost:80", cookie=cookie) == of_tenant
        assert at.shares == [Share(f"{UNVERIFIED_ADDRESS} session", is_verified=False)]
        for host in ("tenant-b.localhost", "localhost", "no.example"):
            assert not (await at.share(host=host, cookie=cookie)).is_verified
        assert not (await at.share(host="tenant-a.localhost", cookie="sessionid=x")).is_verified

    run(test)


@pytest.fixture
def handler(settings: Any) -> Iterator[Handler]:
    """The web process with eight threads, one of them for unverified requests."""
    settings.WEB_THREADS = 8
    handler = Handler()
    yield handler
    together = threading.Barrier(8)

    def close() -> None:
        together.wait(60)
        connections.close_all()

    closed = [handler._pool._executor.submit(close) for _ in range(8)]
    for stream in closed:
        stream.result(60)
    handler._pool.close()


@pytest.mark.django_db(transaction=True)
def test_first_request_of_an_address_waits_for_one_request_of_a_flooding_address(
    handler: Handler, program_a: Program, program_b: Program
) -> None:
    """The flood has keys of a known tenant, of unknown ones, and any number of hosts."""
    answered: list[str] = []
    at_once: list[int] = []
    is_free = threading.Event()

    def get_response(request: HttpRequest) -> HttpResponse:
        at_once.append(handler._pool.running(is_verified=False))
        is_free.wait(60)
        answered.append(request.META["REMOTE_ADDR"])
        request.close()
        return HttpResponse()

    handler.get_response = get_response

    async def ask(**of: str) -> int:
        sent: list[dict[str, Any]] = []
        pieces = iter([{"type": "http.request", "body": b""}])

        async def receive() -> dict[str, Any]:
            return next(pieces, None) or await asyncio.Future()

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await handler(scope(**of), receive, send)
        return int(sent[0]["status"])

    async def main() -> None:
        tenants = (program_a.tenant.id, program_b.tenant.id)
        flood = [
            asyncio.create_task(ask(authorization=bearer(new_key(tenants[number % 2]))))
            for number in range(50)
        ]
        flood += [
            asyncio.create_task(ask(host=f"{number}.localhost:{number}")) for number in range(50)
        ]
        while not at_once:
            await asyncio.sleep(0.001)
        first = asyncio.create_task(ask(address=OTHER_ADDRESS, authorization=bearer(program_a.key)))
        await asyncio.sleep(0.05)
        is_free.set()
        assert await first == 200
        assert answered.index(OTHER_ADDRESS) <= 5
        assert set(await asyncio.gather(*flood)) == {200}

    asyncio.run(asyncio.wait_for(main(), 120))
    assert max(at_once) == 1


def test_concurrent_readiness_requests_share_one_check(
    handler: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths: list[str] = []
    is_free = threading.Event()

    def ready(request: HttpRequest) -> HttpResponse:
        is_free.wait(60)
        paths.append(request.path)
        return HttpResponse(b"ready")

    monkeypatch.setattr("konstruct.web.handler.ready", ready)
    bodies: list[bytes] = []

    async def ask() -> None:
        async def send(message: dict[str, Any]) -> None:
            bodies.append(message.get("body", b""))

        await handler(scope(path="/health/ready", host="no.example"), asyncio.Future, send)

    async def main() -> None:
        all_of_them = [asyncio.create_task(ask()) for _ in range(50)]
        await asyncio.sleep(0.01)
        is_free.set()
        await asyncio.gather(*all_of_them)

    asyncio.run(asyncio.wait_for(main(), 60))
    assert paths == ["/health/ready"]
    assert bodies.count(b"ready") == 50


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("ending", ["revoked", "suspended"])
def test_an_open_stream_ends_when_its_caller_may_read_no_more(
    program_a: Program, ending: str
) -> None:
    verifying, watched = Verifying(), WatchedReply()
    request = ASGIRequest(scope(authorization=bearer(program_a.key)), BytesIO(b""))
    response = StreamingResponse(
        program_a.tenant.id, uuid4(), 60, b"opening", str.encode, lambda _: b"", b"", b"refused"
    )
    waiters, texts = Mock(), Mock()
    waiters.wait = lambda *_: asyncio.sleep(3600)
    texts.watch = lambda *_: nullcontext(watched)

    def end_access() -> None:
        with tenant_scope(program_a.tenant.id):
            key = ApiKey.objects.get()
        if ending == "revoked":
            with tenant_scope(program_a.tenant.id):
                revoke_key(key.pk)
        else:
            with database.as_owner():
                provisioning.suspend_tenant(program_a.tenant)
        connections.close_all()

    async def read() -> list[bytes]:
        async def end(sent: str) -> bytes:
            return b"end"

        share = await verifying.callers.share_of(request)
        pieces = stream_reply(
            response, waiters, texts, end, lambda: verifying.callers.is_still_valid(request, share)
        )
        received = [await anext(pieces)]
        watched.add([ReplyChunk((1, 0), b"1", "first", is_failed=False)])
        received.append(await anext(pieces))
        await asyncio.to_thread(end_access)
        verifying.clock.now += callers.RECHECK_SECONDS
        watched.add([ReplyChunk((2, 0), b"1", "second", is_failed=False)])
        return [*received, *[piece async for piece in pieces]]

    assert asyncio.run(read()) == [b"opening", b"first", b"refused"]
    # Once at the start, and once after its expiry.
    assert len(verifying.shares) == 2


@pytest.mark.django_db(transaction=True)
def test_key_with_a_wrong_secret_gets_no_share(program_a: Program) -> None:
    text = parse_key(program_a.key)
    assert text is not None
    wrong = f"ks_{text.tenant_id.hex}_{text.prefix}_{'0' * 64}"

    async def test(at: Verifying) -> None:
        await at.share(authorization=bearer(program_a.key))
        for key in (wrong, new_key(text.tenant_id)):
            assert not (await at.share(authorization=bearer(key))).is_verified

    run(test)


def test_an_address_may_send_so_much_and_another_is_not_refused_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(callers, "UNVERIFIED_BURST", 3)
    monkeypatch.setattr(callers, "UNVERIFIED_PER_SECOND", 2)

    async def test(at: Verifying) -> None:
        for _ in range(3):
            await at.share()
        with pytest.raises(TooManyUnverified) as refused:
            await at.share(host="another.localhost")
        assert refused.value.retry_after == 1
        await at.share(address=OTHER_ADDRESS)
        at.clock.now += 0.5
        await at.share()

    run(test)
