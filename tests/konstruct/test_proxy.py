"""A real nginx with deploy/nginx.conf: TLS, hosts, addresses, streams, new processes."""

import http.client
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from socket import create_connection
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from konstruct.local import services
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests import database
from tests.konstruct.api.live import WEB, running
from tests.konstruct.conftest import Program
from tests.konstruct.running import PROJECT, eventually
from tests.servers.nginx import NGINX, Nginx, free_ports

# `limit_conn` of deploy/nginx.conf.
MAX_CONNECTIONS = 200
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.long,
    pytest.mark.skipif(NGINX is None and not os.environ.get("CI"), reason="there is no nginx"),
]


class Deployment:
    """nginx and the web processes behind it, each with a separate environment."""

    def __init__(self, environment: dict[str, str], folder: Path, ends: ExitStack) -> None:
        self.environment = {**environment, "BEHIND_TLS_PROXY": "true", "TRUSTED_PROXIES": "1"}
        self.ports = free_ports(2)
        self._folder = folder
        self._webs: dict[int, ExitStack] = {}
        self.nginx = ends.enter_context(Nginx(folder, self.ports).running())
        ends.callback(self.stop)
        self.replace({}, {})

    def replace(self, *changes: dict[str, str]) -> None:
        """Replace the web processes one by one, each by one with these environment changes."""
        for port, change in zip(self.ports, changes, strict=True):
            if port in self._webs:
                self.nginx.send_nothing_to(port)
                self._webs.pop(port).close()
            self._webs[port] = started = ExitStack()
            environment = {**self.environment, **change, "PORT": str(port)}
            started.enter_context(running(WEB, environment, self._folder / f"web-{port}.log"))
            eventually(partial(is_ready, port))
            self.nginx.send_nothing_to(None)

    def stop(self) -> None:
        """Stop the web processes without a notice to nginx; `replace` restarts them."""
        while self._webs:
            self._webs.popitem()[1].close()

    def client(self, host: str = "localhost") -> httpx.Client:
        """Return a client of one of the hosts that trusts the certificate."""
        return httpx.Client(
            base_url=f"https://localhost:{self.nginx.https}",
            headers={"Host": f"{host}:{self.nginx.https}"},
            verify=self.nginx.trust(),
            timeout=60,
        )


def is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health/ready", timeout=5).is_success
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def deployment(environment_of_processes: dict[str, str]) -> Iterator[Deployment]:
    with ExitStack() as ends:
        folder = ends.enter_context(tempfile.TemporaryDirectory(prefix="konstruct-nginx-"))
        yield Deployment(environment_of_processes, Path(folder), ends)


def key(program: Program, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {program.key}", **more}


def test_plain_http_is_sent_to_https(deployment: Deployment) -> None:
    answer = httpx.get(
        f"http://127.0.0.1:{deployment.nginx.http}/admin/?next=1",
        headers={"Host": "tenant-a.localhost"},
    )
    assert (answer.status_code, answer.headers["Location"]) == (
        308,
        "https://tenant-a.localhost/admin/?next=1",
    )


@pytest.mark.parametrize(
    "request_line",
    [
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5",
        b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked",
        b"PRI * HTTP/2.0",
        b"GET / HTTP/0.9",
    ],
)
def test_a_request_with_an_ambiguous_end_is_refused(
    deployment: Deployment, request_line: bytes
) -> None:
    with create_connection(("127.0.0.1", deployment.nginx.http), timeout=60) as client:
        client.sendall(request_line + b"\r\nHost: localhost\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n")
        received = b"".join(iter(partial(client.recv, 65536), b""))
    assert (received[:13], received.count(b"HTTP/1.1 ")) == (b"HTTP/1.1 400 ", 1)


def test_the_host_decides_the_tenant_and_the_key_fits_to_it(
    deployment: Deployment, program_a: Program
) -> None:
    for host, status in (
        ("localhost", 200),
        ("tenant-a.localhost", 200),
        ("tenant-b.localhost", 401),
    ):
        with deployment.client(host) as client:
            assert client.get("/api/v1/agents/", headers=key(program_a)).status_code == status


def test_forwarded_address_of_a_client_is_ignored(
    deployment: Deployment, program_a: Program
) -> None:
    claimed = key(program_a, **{"X-Forwarded-For": "203.0.113.7"})
    with deployment.client() as client:
        assert client.get("/api/v1/messages/?user_id=maria", headers=claimed).status_code == 200
    with tenant_scope(program_a.tenant.id):
        assert set(AccessEvent.objects.values_list("address", flat=True)) == {"127.0.0.1"}


def test_a_stream_arrives_while_it_is_written(deployment: Deployment, program_a: Program) -> None:
    """No worker answers: a proxy that buffers the response would send nothing for a minute."""
    body = {"agent": "ada", "user_id": "maria", "content": "Hello"}
    asking = key(program_a, Accept="text/event-stream")
    with (
        deployment.client() as client,
        client.stream("POST", "/api/v1/messages/", json=body, headers=asking, timeout=40) as stream,
    ):
        assert next(stream.iter_lines()) == "event: accepted"


@pytest.mark.parametrize(("size", "by"), [(2_600_000, "konstruct"), (3_200_000, "nginx")])
def test_a_body_that_is_too_large_is_explained(
    deployment: Deployment, program_a: Program, size: int, by: str
) -> None:
    body = {"agent": "ada", "user_id": "maria", "content": "x" * size}
    with deployment.client() as client:
        refused = client.post("/api/v1/messages/", json=body, headers=key(program_a))
    assert refused.status_code == 413
    assert ("urn:konstruct:problem" in refused.text) is (by == "konstruct")


def test_refusals_of_nginx_have_retry_after(deployment: Deployment, program_a: Program) -> None:
    with ExitStack() as opened:
        for _ in range(MAX_CONNECTIONS):
            connection = opened.enter_context(
                deployment.nginx.trust().wrap_socket(
                    create_connection(("127.0.0.1", deployment.nginx.https)),
                    server_hostname="localhost",
                )
            )
            connection.sendall(b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
        refused = list[httpx.Response]()

        def is_refused() -> bool:
            refused[:] = [client.get("/api/v1/agents/", headers=key(program_a))]
            return refused[0].status_code != 200

        client = opened.enter_context(deployment.client())
        eventually(is_refused)
    assert_refused(refused[0], 429, "too-many-requests", "1")


def assert_refused(answer: httpx.Response, status: int, kind: str, seconds: str) -> None:
    assert (answer.status_code, answer.headers.get("Retry-After")) == (status, seconds)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json() | {"detail": ""} == {
        "type": f"urn:konstruct:problem:{kind}",
        "title": http.client.responses[status],
        "status": status,
        "detail": "",
    }


SECOND_LOGIN = "konstruct_app_2"


@pytest.fixture
def second_login() -> Iterator[str]:
    """Yield the URL of a second login of the application, which is dropped after the test."""
    password = "of-the-second-login"
    psql = [services.binaries() / "psql", "-Xq", "-d", database.url_of("superuser")]
    ran = subprocess.run(
        [*psql, "-v", f"login={SECOND_LOGIN}", "-f", PROJECT / "deploy" / "app_login.sql"],
        env={**os.environ, "KONSTRUCT_APP_PASSWORD": password},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    url = urlsplit(database.url_of("app"))
    host = url.netloc.rpartition("@")[2]
    yield url._replace(netloc=f"{SECOND_LOGIN}:{password}@{host}", query="").geturl()
    with psycopg.connect(database.url_of("superuser"), autocommit=True) as superuser:
        superuser.execute(f"DROP ROLE {SECOND_LOGIN}")


def sessions_of_second_login() -> int:
    with psycopg.connect(database.url_of("superuser")) as superuser:
        found = superuser.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE usename = %s", [SECOND_LOGIN]
        )
        return found.fetchall()[0][0]


def test_no_request_fails_while_processes_and_the_password_are_replaced(
    deployment: Deployment, program_a: Program, second_login: str
) -> None:
    """The steps of docs/operations.md: to the second login, and back to the first."""
    answered, ends = list[int](), threading.Event()

    def ask() -> None:
        with deployment.client() as client:
            while not ends.is_set():
                answer = client.get("/api/v1/agents/", headers=key(program_a))
                answered.append(answer.status_code)
                body = {"agent": "ada", "user_id": "maria", "content": "Hello"}
                sent = client.post("/api/v1/messages/", json=body, headers=key(program_a))
                answered.append(sent.status_code)
                ends.wait(0.05)

    client = threading.Thread(target=ask)
    client.start()
    try:
        second = {"DATABASE_URL": second_login}
        deployment.replace(second, second)
        eventually(lambda: len(answered) > 20)
        assert sessions_of_second_login() > 0
        deployment.replace({}, {})
        assert sessions_of_second_login() == 0
    finally:
        ends.set()
        client.join(60)
    assert set(answered) == {200, 202}
