"""The steps of docs/operations.md that rotate secrets while processes serve.

Old and new processes serve side by side in each step: a request may reach either.
"""

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from socket import create_server

import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client, override_settings

from konstruct.local import services
from tenants.audit.people import pseudonym, pseudonyms
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.konstruct.running import eventually

OLD, NEW = secrets.token_hex(32), secrets.token_hex(32)
# SECRET_KEY and SECRET_KEY_FALLBACKS of the processes before, and after each step.
STEPS = [(OLD, []), (OLD, [NEW]), (NEW, [OLD]), (NEW, [])]


@contextmanager
def process(step: tuple[str, list[str]]) -> Iterator[None]:
    """Handle requests as a process with these keys."""
    with override_settings(SECRET_KEY=step[0], SECRET_KEY_FALLBACKS=step[1]):
        yield


@pytest.fixture
def person(tenant_a: Tenant) -> Client:
    """A person who logged in with the old key."""
    client = Client(headers={"Host": "tenant-a.localhost"})
    with tenant_scope(tenant_a.id), process(STEPS[0]):
        client.force_login(User.objects.create_superuser("nora"))
    return client


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_login_lasts_while_the_secret_key_is_rotated(person: Client, at: int) -> None:
    """Each step is tested with the processes of the step before."""
    before, after = STEPS[at - 1], STEPS[at]
    if at == 3:  # the sessions were renewed while both keys were known
        with process(before):
            assert person.get("/admin/").status_code == 200
    for step in (before, after, before, after):
        with process(step):
            assert person.get("/admin/").status_code == 200


def test_receipts_are_found_as_long_as_the_old_key_is_a_fallback(tenant_a: Tenant) -> None:
    with tenant_scope(tenant_a.id), process(STEPS[0]):
        name = pseudonym("maria")
    found = []
    for step in STEPS:
        with tenant_scope(tenant_a.id), process(step):
            found.append(name in pseudonyms("maria"))
    assert found == [True, True, True, False]


@pytest.mark.slow
def test_the_cache_takes_the_old_and_the_new_password_until_the_old_one_is_removed() -> None:
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--requirepass", OLD]
    server = subprocess.Popen([services.server(), *options], stdout=subprocess.DEVNULL)

    def lets_in(password: str) -> bool:
        with redis.Redis(port=port, password=password) as client:
            try:
                return bool(client.ping())
            except redis.AuthenticationError:
                return False

    def is_up() -> bool:
        try:
            return lets_in(OLD)
        except redis.ConnectionError:
            return False

    try:
        eventually(is_up)
        with redis.Redis(port=port, password=OLD) as connected:
            connected.execute_command("ACL", "SETUSER", "default", f">{NEW}")
            assert (lets_in(OLD), lets_in(NEW)) == (True, True)
            connected.execute_command("ACL", "SETUSER", "default", f"<{OLD}")
            assert (lets_in(OLD), lets_in(NEW)) == (False, True)
            assert connected.ping()  # open connections stay
    finally:
        server.terminate()
        server.wait(30)
