"""A share of the threads needs a verified key or session."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.test import Client

from konstruct.api.auth.keys import new_key
from konstruct.web import handler as module
from konstruct.web.application import Application
from tenants.context import tenant_scope
from tests.konstruct.conftest import MESSAGES, Program

ADDRESS = "203.0.113.9"
OTHER_ADDRESS = "198.51.100.7"
THREADS = 16


def scope(
    *, address: str = ADDRESS, path: str = MESSAGES, host: str = "localhost", **headers: str
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


class Web:
    """The web process. Views are replaced by `view`; the middleware is the real one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.application = Application()
        self.names: list[str] = []
        self.running = 0
        self.most = 0
        self.is_free = threading.Event()
        self.is_free.set()
        respond = self.application.handler.get_response
        monkeypatch.setattr(self.application.handler, "_middleware_chain", self._chain(respond))

    def _chain(self, respond: Any) -> Any:
        chain = self.application.handler._middleware_chain

        def call(request: Any) -> HttpResponse:
            self.running += 1
            self.most = max(self.most, self.running)
            self.is_free.wait(60)
            try:
                return chain(request)  # type: ignore[no-any-return]
            finally:
                self.names.append(request.caller.name)
                self.running -= 1

        return call

    async def get(self, **of: str) -> int:
        """Send a GET, and return the status."""
        sent: list[Any] = []
        pieces = iter([{"type": "http.request", "body": b""}])

        async def receive() -> Any:
            return next(pieces, None) or await asyncio.Future()

        async def send(message: Any) -> None:
            sent.append(message)

        await self.application(scope(**of), receive, send)
        return int(sent[0]["status"])

    def close(self) -> None:
        """Close the connections of its threads."""
        together = threading.Barrier(THREADS)

        def close() -> None:
            together.wait(60)
            connections.close_all()

        for closed in [self.application.handler.threads.submit(close) for _ in range(THREADS)]:
            closed.result(60)
        self.application.handler.threads.shutdown()


@pytest.fixture
def web(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    settings.WEB_THREADS = THREADS
    web = Web(monkeypatch)
    yield web
    web.close()


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 60))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


@pytest.mark.django_db(transaction=True)
def test_requests_count_for_a_tenant_after_its_key_or_session_was_verified(
    web: Web, program_a: Program, program_b: Program
) -> None:
    with tenant_scope(program_a.tenant.id):
        user = get_user_model().objects.create_user("ann", password="x", is_staff=True)
        client = Client(headers={"host": "tenant-a.localhost"})
        client.force_login(user)
    cookie = f"sessionid={client.cookies['sessionid'].value}"
    wrong = f"{program_a.key[:-8]}{'0' * 8}"
    of_a = program_a.tenant.id.hex

    async def test() -> None:
        for host in ("localhost", "LOCALHOST:8000"):
            assert await web.get(authorization=bearer(program_a.key), host=host) == 200
        for key in (wrong, new_key(program_a.tenant.id)):
            assert await web.get(authorization=bearer(key)) == 401
        await web.get(host="tenant-b.localhost", authorization=bearer(program_a.key))
        for host in ("tenant-a.localhost:80", "tenant-b.localhost", "localhost", "no.example"):
            await web.get(host=host, cookie=cookie, path="/admin/")
        await web.get(host="tenant-a.localhost", cookie="sessionid=x", path="/admin/")

    run(test())
    assert web.names == [of_a, of_a, "", "", of_a, of_a, "", "", "", ""]


@pytest.mark.django_db(transaction=True)
def test_a_tenant_has_half_of_the_threads_however_many_keys_it_has(
    web: Web, program_a: Program, program_b: Program
) -> None:
    from konstruct.api.auth.keys import issue_key

    keys = [issue_key(tenant_id=program_a.tenant.id, name=f"key {n}")[1] for n in range(20)]
    in_views, most = [], []
    is_free = threading.Event()
    handler = web.application.handler
    view = handler._get_response

    def slow(request: HttpRequest) -> HttpResponse:
        of_a = program_a.key[:36] in request.headers["Authorization"]
        if of_a:
            in_views.append(1)
            most.append(len(in_views))
            is_free.wait(60)
            in_views.pop()
        return view(request)

    handler._get_response = slow  # type: ignore[method-assign]
    handler.load_middleware()

    async def test() -> None:
        asked = [asyncio.create_task(web.get(authorization=bearer(key))) for key in keys * 2]
        await until(lambda: len(in_views) == THREADS // 2)
        began = time.monotonic()
        assert await web.get(authorization=bearer(program_b.key), address=OTHER_ADDRESS) == 200
        assert time.monotonic() - began < 2
        is_free.set()
        assert set(await asyncio.gather(*asked)) == {200}

    run(test())
    assert max(most) == THREADS // 2


@pytest.mark.django_db(transaction=True)
def test_unverified_requests_have_an_eighth_of_the_threads_and_addresses_take_turns(
    web: Web, program_a: Program, program_b: Program
) -> None:
    """The flood has keys of known tenants, and any number of hosts."""
    tenants = (program_a.tenant.id, program_b.tenant.id)

    async def test() -> None:
        web.is_free.clear()
        keys = [{"authorization": bearer(new_key(tenants[n % 2]))} for n in range(50)]
        hosts = [{"host": f"{n}.localhost:{n}"} for n in range(50)]
        flood = [asyncio.create_task(web.get(**of)) for of in keys + hosts]
        others = [
            asyncio.create_task(web.get(address=f"2001:db8:1:{n % 3}::{n}")) for n in range(6)
        ]
        await until(lambda: web.running == 2)
        first = asyncio.create_task(
            web.get(address=OTHER_ADDRESS, authorization=bearer(program_a.key))
        )
        await asyncio.sleep(0.05)
        web.is_free.set()
        assert await first == 200
        assert len(web.names) < 50  # of more than a hundred
        assert set(await asyncio.gather(*flood)) <= {401, 404, 429}
        assert set(await asyncio.gather(*others)) == {401}

    run(test())
    assert web.most <= 3  # the first one moved to its tenant


def test_a_request_that_finds_no_thread_in_time_is_refused(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WAIT_SECONDS", 0.05)

    async def test() -> None:
        web.is_free.clear()
        running = asyncio.create_task(web.get())
        await until(lambda: web.running == 1)
        assert await web.get() == 503
        web.is_free.set()
        assert await running == 401

    run(test())
