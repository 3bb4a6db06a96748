"""The contract of each operation: who may call it, what it costs, and what is recorded.

Every operation is called without a key, with keys of each kind, by people, and by a program of
another tenant. `status_matrix.json` holds the action and subject of each operation in the access
log, and its status for each caller. An operation without a case fails.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django_redis import get_redis_connection

from konstruct.api.auth import keys
from konstruct.api.models import KeyScope
from konstruct.orchestrator.agents import create_agent
from memory import indexing as embeddings
from memory.conversations.short_term import get_recent_messages
from memory.facts import LongTermMemory
from memory.models import MemoryEntry, Message, PromptSource, RecallEvent
from tenants.audit.models import AccessEvent
from tenants.context import connection, public_scope, tenant_scope
from tenants.models import Tenant
from tenants.servers import MAIN
from tests import database
from tests.konstruct.api.case import graph
from tests.konstruct.api.routes import CASES, V1, routes
from tests.konstruct.api.seed_data import SeedData, answer, create_seed_data, talk
from tests.konstruct.conftest import Program, json_bytes
from tests.messages import messages_to_postgres
from tests.openapi import operation_of

SECRET = " The code word is heliotrope."
MATRIX = json.loads(Path(__file__).with_name("status_matrix.json").read_text())
TIME_WITHOUT_OFFSET = re.compile(r'"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.]*"')
# Callers that may learn nothing of the tenant, or nothing of its users.
STRANGERS = {"no key", "key of another tenant", "key of another user"}

Send = Callable[..., Any]


@dataclass
class World:
    """Two tenants with the same messages except the secret."""

    victim: SeedData
    attacker: SeedData
    # Keys of the victim's tenant, bound to an agent and to a user without messages.
    narrow_programs: dict[str, Program]


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    """Created once and committed. Changes of tests are undone."""
    with django_db_blocker.unblock():
        victim = _create_seed("tenant-a", SECRET)
        yield World(victim, _create_seed("tenant-b", ""), _narrow_programs(victim))
        database.remove_committed_rows()


def _create_seed(slug: str, secret: str) -> SeedData:
    with public_scope():
        tenant = Tenant.objects.get(slug=slug)
    agent = create_agent(tenant_id=tenant.id, name="ada", system_prompt=f"You are Ada.{secret}")
    _, key = keys.issue_key(tenant_id=tenant.id, name=f"tests{secret}", scopes=KeyScope.values)
    seed = create_seed_data(Program(tenant, agent, str(key)), secret=secret)
    talk(seed.program, graph(seed), f"Hello{secret}")
    talk(seed.program, "another", "Hello")
    # At least two rows in every list.
    answer(seed.program, seed.program.send(f"And then?{secret}").json()["id"])
    with tenant_scope(tenant.id):  # replies to others with words of maria
        message = Message.objects.filter(user_id="maria").first()
        for event in RecallEvent.objects.exclude(user_id="maria"):
            PromptSource.objects.create(event=event, source_id=message.pk)
    facts = LongTermMemory()
    facts.store(MemoryEntry(tenant_id=tenant.id, user_id="vera", content=f"Vera is tall.{secret}"))
    facts.update(seed.fact, tenant.id, content=f"Vera loves tea.{secret}")
    embeddings.drain(tenant.id)
    return seed


def _narrow_programs(seed: SeedData) -> dict[str, Program]:
    agent = create_agent(tenant_id=seed.program.tenant.id, name="stranger")
    return {
        "agent": seed.program.with_key(scopes=KeyScope.values, agent_id=agent.id),
        "user": seed.program.with_key(scopes=KeyScope.values, user_id="stranger"),
    }


@pytest.fixture(scope="module")
def callers(world: World) -> dict[str, Send]:
    """Return a function for each kind of caller that sends a request."""
    seed, every = world.victim, KeyScope.values
    tenant = seed.program.tenant
    maria, stranger = {"user_id": "maria"}, {"user_id": "stranger"}
    agent, other = {"agent_id": seed.program.agent.pk}, {"agent_id": seed.other.pk}

    def key(**options: Any) -> Send:
        return seed.program.with_key(**options).request

    return {
        "no key": Client(headers={"Host": f"{tenant.slug}.localhost"}).generic,
        **{f"scope {scope}": key(scopes=[scope]) for scope in every},
        "key of maria": key(scopes=every, **maria),
        "key of maria, read": key(scopes=["read"], **maria),
        "key of another user": key(scopes=every, **stranger),
        "key of the agent": key(scopes=every, **agent),
        "key of another agent": key(scopes=every, **other),
        "key of the agent and maria": key(scopes=every, **agent, **maria),
        "key of another tenant": world.attacker.program.request,
        "superuser": _person(tenant, is_staff=True, is_superuser=True),
        "staff without permissions": _person(tenant, is_staff=True),
        "user who is not staff": _person(tenant),
    }


def _person(tenant: Tenant, **options: Any) -> Send:
    client = Client(headers={"Host": f"{tenant.slug}.localhost"}, raise_request_exception=False)
    with tenant_scope(tenant.id):
        client.force_login(User.objects.create(username=f"p{uuid4()}", **options))
    return client.generic


@pytest.fixture(autouse=True)
def _keys_were_just_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the statement that records the use of a key out of the budgets on a slow machine."""
    monkeypatch.setattr(keys, "LAST_USE_INTERVAL", keys.LAST_USE_INTERVAL * 1_000)


def clears_last(case: tuple[str, str]) -> tuple[bool, str]:
    """Order the cases so that sessions, which are outside of a test's transaction, are read."""
    return case[1] == "DELETE", case[0]


def options_of(route: str, method: str, seed: SeedData) -> dict[str, Any]:
    case = CASES[route, method]
    data = b"" if case.body is None else json_bytes(case.body(seed))
    return {"data": data, "content_type": "application/json"}


def undone(seed: SeedData, send: Send, method: str, path: str, **options: Any) -> Any:
    """Send a request, and undo its changes."""
    with transaction.atomic(using=seed.program.tenant.server):
        response = send(method, path, **options)
        transaction.set_rollback(True, using=seed.program.tenant.server)
    return response


def measured(seed: SeedData, send: Send) -> tuple[list[str], AccessEvent, Any]:
    """Return the messages to Postgres of a request, its record and response. It is undone."""
    server = seed.program.tenant.server
    with transaction.atomic(using=server):
        with messages_to_postgres() as messages:
            response = send()
        with tenant_scope(seed.program.tenant.id):
            event = AccessEvent.objects.order_by("id").last()
        transaction.set_rollback(True, using=server)
    assert sum("INTO audit_accessevent" in statement for statement in messages) == 1
    assert event is not None
    assert event.request_id == response.headers["X-Request-ID"]
    # For a tenant of another server the list is read first.
    return messages[server != MAIN :], event, response


def messages_of(seed: SeedData, method: str, path: str, **options: Any) -> tuple[int, AccessEvent]:
    """Return the number of messages to Postgres of a request, and its record."""
    messages, event, response = measured(
        seed, partial(seed.program.request, method, path, **options)
    )
    assert response.status_code < 300, response.content
    return len(messages), event


def secrets_of(seed: SeedData, request: str) -> list[str]:
    """Return names and secrets of the tenant that the request does not contain."""
    tenant = seed.program.tenant
    known = [
        SECRET.strip(), "heliotrope", tenant.slug, str(tenant.id), tenant.id.hex, tenant.name,
        str(seed.program.agent.id), str(seed.other.id), seed.sent["id"], str(seed.reply.id),
        str(seed.event.id), str(seed.fact), str(seed.proposed), str(seed.rejected),
        str(seed.run), str(seed.preview),
    ]  # fmt: skip
    return [secret for secret in known if secret not in request]


def test_every_operation_has_a_case() -> None:
    assert routes() == set(CASES)
    assert set(MATRIX) == {f"{method} {route}" for route, method in routes()}


@pytest.mark.usefixtures("model_without_facts")
@pytest.mark.parametrize(("route", "method"), sorted(CASES, key=clears_last))
def test_operation_keeps_its_contract(
    world: World, callers: dict[str, Send], route: str, method: str
) -> None:
    seed, case, recorded = world.victim, CASES[route, method], MATRIX[f"{method} {route}"]
    path, options = case.path(seed), options_of(route, method, seed)
    messages, event = messages_of(seed, method, path, **options)
    assert messages == case.messages
    assert [event.action, event.subject] == recorded["recorded"]
    assert event.actor_kind == "program"
    statuses = {}
    for name, send in callers.items():
        response = undone(seed, send, method, path, **options)
        statuses[name] = response.status_code
        text = response.content.decode() + str(dict(response.headers))
        assert TIME_WITHOUT_OFFSET.findall(text) == []
        if name == "key of another user":
            assert "heliotrope" not in text
        elif name in STRANGERS:
            request = path + options["data"].decode()
            assert [secret for secret in secrets_of(seed, request) if secret in text] == []
    assert statuses == recorded["statuses"]


def test_requests_of_another_tenant_change_nothing(world: World) -> None:
    seed, attacker = world.victim, world.attacker.program
    server = seed.program.tenant.server
    with transaction.atomic(using=server), transaction.atomic():
        requests = [
            (method, CASES[route, method].path(seed), options_of(route, method, seed))
            for route, method in sorted(CASES, key=clears_last)
        ]
        before = state_of(seed)
        for method, path, options in requests:
            attacker.request(method, path, **options)
        assert state_of(seed) == before
        transaction.set_rollback(True)
        transaction.set_rollback(True, using=server)


def state_of(seed: SeedData) -> dict[str, Any]:
    """Return a digest of every table of the tenant, and of its cached window."""
    tenant_id = seed.program.tenant.id
    get_recent_messages(tenant_id, seed.program.agent.id, "maria")
    cache = get_redis_connection()
    keys = sorted(key for key in cache.keys(f"{tenant_id}:*") if b":ratelimit:" not in key)
    windows = {key: cache.lrange(key, 0, -1) for key in keys}
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        tables = [name for (name,) in cursor.fetchall()]
        digest = (
            "SELECT '{0}', md5(string_agg(row, ' ' ORDER BY row)) FROM"
            ' (SELECT to_jsonb(t)::text AS row FROM "{0}" AS t) AS rows'
        )
        cursor.execute(" UNION ALL ".join(digest.format(table) for table in tables))
        return {"tables": dict(cursor.fetchall()), "windows": windows}


def test_lists_keep_their_budgets_with_any_number_of_rows(world: World) -> None:
    """Without filters, so that each list has two rows or more."""
    costs = {}
    for (route, method), case in CASES.items():
        path, _, query = case.path(world.victim).partition("?")
        if method != "GET" or not path.startswith(V1):
            continue
        parameters = {
            found["name"]: found for found in operation_of(path, method).get("parameters", ())
        }
        if "cursor" in parameters:
            needed = [pair for pair in parse_qsl(query) if parameters[pair[0]].get("required")]
            for limit in ("1", "50"):
                address = f"{path}?{urlencode([*needed, ('limit', limit)])}"
                costs[route, limit], _ = messages_of(world.victim, method, address)
    # Fewer if no row of the page refers to others.
    budgets = {key: CASES[key[0], "GET"].messages for key in costs}
    assert {key: cost for key, cost in costs.items() if cost > budgets[key]} == {}
    assert len(costs) == 56
