"""Programs of two tenants, and a language model server."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.test import Client

from konstruct.api.auth.keys import issue_key, new_key
from konstruct.api.models import ApiKey, KeyScope
from konstruct.llm import client as llm_client
from konstruct.orchestrator.models import Agent
from konstruct.privacy.erasure import person
from memory.context import recall_events, recall_traces
from memory.models import Message
from tenants.audit.models import AccessEvent
from tenants.audit.people import Person
from tenants.context import public_scope, tenant_scope
from tenants.models import Tenant
from tests.memory.recall_traces import is_same
from tests.servers.llm import LLMServer
from tests.servers.mail import MailServer, mail_server

MESSAGES = "/api/v1/messages/"

# Fixtures that are functions.
Browser = Callable[..., Client]
Post = Callable[..., Any]
SendMessage = Callable[..., Message]


@pytest.fixture(autouse=True)
def _no_wait_for_tests_beside_it(request: pytest.FixtureRequest) -> Iterator[None]:
    """Erasures do not wait for transactions of other tests, which can take a minute."""
    with pytest.MonkeyPatch.context() as patch:
        if not request.node.get_closest_marker("alone"):
            patch.setattr(person, "TRANSACTION_TIMEOUT_SECONDS", 0)
        yield


@pytest.fixture(autouse=True)
def _prompts_are_read_as_they_were_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read each recall event that a test writes from its references, without a statement."""
    packers: list[Any] = []

    class Packer(recall_events._Packer):
        def pack(self) -> bytes:
            packers.append(self)
            return super().pack()

    def record(trace: Any, **given: Any) -> Any:
        event = original(trace, **given)
        packer = packers.pop()
        read = recall_traces._Reader(event, packer.rows).trace()
        assert is_same(trace, read) or not packer.is_complete
        return event

    original = recall_events.record
    monkeypatch.setattr(recall_events, "_Packer", Packer)
    monkeypatch.setattr(recall_events, "record", record)


@dataclass
class Program:
    """A program that uses the API of one tenant, by default on the neutral host."""

    tenant: Tenant
    agent: Agent
    key: str
    host: str = "localhost"

    def with_key(self, *, name: str = "bound", **options: Any) -> "Program":
        """Return a program of the same tenant and agent with another key."""
        _, key = issue_key(tenant_id=self.tenant.id, name=name, **options)
        return Program(self.tenant, self.agent, str(key), self.host)

    def request(self, method: str, path: str, **options: Any) -> Any:
        """Send a request with the program's key."""
        client = Client(raise_request_exception=False)
        headers = {
            "Host": self.host,
            "Authorization": f"Bearer {self.key}",
            **options.pop("headers", {}),
        }
        return client.generic(method, path, headers=headers, **options)

    def get(self, path: str, **options: Any) -> Any:
        """Send a GET."""
        return self.request("GET", path, **options)

    def write(self, method: str, path: str, body: Any, **options: Any) -> Any:
        """Send JSON, or bytes as they are."""
        data = body if isinstance(body, bytes) else json_bytes(body)
        options.setdefault("content_type", "application/json")
        return self.request(method, path, data=data, **options)

    def post(self, path: str, body: Any, **options: Any) -> Any:
        """Send JSON, or bytes as they are, by POST."""
        return self.write("POST", path, body, **options)

    def send(self, content: str = "Hello", *, query: str = "", **fields: Any) -> Any:
        """Send a message of the user maria to the program's agent."""
        headers = fields.pop("headers", {})
        body = {"agent": self.agent.name, "user_id": "maria", "content": content, **fields}
        return self.post(MESSAGES + query, body, headers=headers)


def json_bytes(body: Any) -> bytes:
    """Encode as JSON."""
    return json.dumps(body).encode()


@pytest.fixture(scope="session")
def llm_connections() -> Iterator[None]:
    """Close the connections to language models after all tests."""
    yield
    for is_guarded in (False, True):
        llm_client._client(os.getpid(), is_guarded).close()


@pytest.fixture
def llm_server(llm_connections: None) -> Iterator[LLMServer]:
    """A language model server. Its default answer is "Noted."."""
    llm_client._known_apis.clear()
    with LLMServer() as server:
        yield server


@pytest.fixture(scope="session")
def make_program() -> Callable[[Tenant], Program]:
    """Create the agent ada and an API key in a tenant."""

    def make(tenant: Tenant) -> Program:
        # Only rows: the services would send thirty statements, a thousand times.
        key = new_key(tenant.id)
        with tenant_scope(tenant.id):
            agent = Agent.objects.create(name="ada", system_prompt="You are Ada.")
            ApiKey.objects.create(
                name="tests", prefix=key.prefix, secret_digest=key.digest, scopes=KeyScope.values
            )
        return Program(tenant, agent, str(key))

    return make


@pytest.fixture
def program_a(tenant_a: Tenant, make_program: Callable[[Tenant], Program]) -> Program:
    """A program of tenant A."""
    return make_program(tenant_a)


@pytest.fixture(scope="module")
def module_program(
    module_transaction: Callable[[], AbstractContextManager[None]],
    make_program: Callable[[Tenant], Program],
) -> Program:
    """A program of tenant A, once for a module whose tests do not commit."""
    with module_transaction():
        with public_scope():
            tenant = Tenant.objects.get(slug="tenant-a")
        return make_program(tenant)


@pytest.fixture
def program_b(tenant_b: Tenant, make_program: Callable[[Tenant], Program]) -> Program:
    """A program of tenant B, whose agent has the same name as A's."""
    return make_program(tenant_b)


@pytest.fixture
def browser() -> Browser:
    """Log in a user: ``browser(tenant)`` a superuser, or ``browser(tenant, "view_message")``."""

    def log_in(tenant: Tenant, *permissions: str) -> Client:
        client = Client(headers={"Host": f"{tenant.slug}.localhost"})
        with tenant_scope(tenant.id):
            user = User.objects.create_user(f"u{uuid4()}", is_staff=True)
            user.is_superuser = not permissions
            user.save()
            user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
            client.force_login(user)
        return client

    return log_in


@pytest.fixture
def admin(program_a: Program, browser: Browser) -> Client:
    """A superuser of tenant A."""
    return browser(program_a.tenant)


@pytest.fixture
def mail(settings: Any) -> Iterator[MailServer]:
    """A mail server that the settings name."""
    with mail_server() as server:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        yield server


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command. Return its standard output."""

    def run(*arguments: str) -> str:
        call_command(*arguments)
        return capsys.readouterr().out

    return run


def access_events(tenant: Tenant) -> list[AccessEvent]:
    """Return the access log of a tenant, oldest first."""
    with tenant_scope(tenant.id):
        return list(AccessEvent.objects.order_by("id"))


def user_of(event: AccessEvent | None) -> str | None:
    """Return the user of an entry of the access log, by the pseudonym."""
    assert event is not None
    if event.pseudonym is None:
        return None
    with tenant_scope(event.tenant_id):
        return Person.objects.get(pseudonym=event.pseudonym).user_id


def users_shown(event: AccessEvent) -> list[str]:
    """Return the users that the page, search or list of an entry showed."""
    with tenant_scope(event.tenant_id):
        rows = Person.objects.filter(pseudonym__in=event.pseudonyms or ())
        return sorted(rows.values_list("user_id", flat=True))
