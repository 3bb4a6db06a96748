"""Every route and method with a program of another tenant, and with narrow keys."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django_redis import get_redis_connection

from konstruct.api.auth.keys import issue_key
from konstruct.api.models import KeyScope
from konstruct.orchestrator.agents import create_agent
from memory.conversations.short_term import get_recent_messages
from memory.facts import LongTermMemory
from memory.indexing import embedding_jobs as embeddings
from memory.models import MemoryEntry
from tenants.context import connection, public_scope, tenant_scope
from tenants.models import Tenant
from tests import database
from tests.konstruct.api.case import Case
from tests.konstruct.api.routes import CASES, LONG, graph, routes
from tests.konstruct.api.seed_data import SeedData, answer, create_seed_data, talk
from tests.konstruct.conftest import Program, json_bytes
from tests.openapi import described

SECRET = " The code word is heliotrope."
ROUTES = sorted(CASES)


@dataclass
class World:
    """Two tenants with the same messages except the secret, and a browser of the second."""

    victim: SeedData
    attacker: SeedData
    browser: Client
    # Keys of the victim's tenant, bound to an agent and to a user without messages.
    narrow_programs: dict[str, Program]

    @property
    def victims_host(self) -> str:
        return f"{self.victim.program.tenant.slug}.localhost"


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    """Created once and committed. The tests check that the victim's rows do not change."""
    with django_db_blocker.unblock():
        victim = _create_seed("tenant-a", SECRET)
        attacker = _create_seed("tenant-b", "")
        browser = Client(raise_request_exception=False)
        with tenant_scope(attacker.program.tenant.id):
            user = get_user_model().objects.create_superuser("mallory", password="pw")
            browser.force_login(user)
        narrow_programs = _narrow_programs(victim)
        before = state_of(victim)
        yield World(victim, attacker, browser, narrow_programs)
        # Of all routes at once: a check after each took half of the time.
        after = state_of(victim)
        database.remove_committed_rows()
        assert after == before


def _create_seed(slug: str, secret: str) -> SeedData:
    with public_scope():
        tenant = Tenant.objects.get(slug=slug)
    agent = create_agent(tenant_id=tenant.id, name="ada", system_prompt=f"You are Ada.{secret}")
    _, key = issue_key(tenant_id=tenant.id, name=f"tests{secret}", scopes=KeyScope.values)
    seed = create_seed_data(Program(tenant, agent, str(key)), secret=secret)
    talk(seed.program, graph(seed), f"Hello{secret}")
    talk(seed.program, "another", "Hello")
    # At least two rows in every list.
    answer(seed.program, seed.program.send(f"And then?{secret}").json()["id"])
    facts = LongTermMemory()
    facts.store(MemoryEntry(tenant_id=tenant.id, user_id="vera", content=f"Vera is tall.{secret}"))
    facts.update(seed.fact, tenant.id, content=f"Vera loves tea.{secret}")
    embeddings.drain(tenant.id)
    return seed


def _narrow_programs(seed: SeedData) -> dict[str, Program]:
    tenant = seed.program.tenant
    agent = create_agent(tenant_id=tenant.id, name="stranger")
    bindings: dict[str, dict[str, Any]] = {
        "agent": {"agent_id": agent.id},
        "user": {"user_id": "stranger"},
    }
    narrow_programs = {}
    for bound, options in bindings.items():
        _, key = issue_key(tenant_id=tenant.id, name=bound, scopes=KeyScope.values, **options)
        narrow_programs[bound] = Program(tenant, seed.program.agent, str(key))
    return narrow_programs


def state_of(seed: SeedData) -> dict[str, Any]:
    """Return a digest of every table of the tenant, and of its cached window."""
    tenant_id = seed.program.tenant.id
    get_recent_messages(tenant_id, seed.program.agent.id, "maria")
    cache = get_redis_connection()
    keys = sorted(key for key in cache.keys(f"{tenant_id}:*") if b":ratelimit:" not in key)
    windows = {key: cache.lrange(key, 0, -1) for key in keys}
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        cursor.execute(
            # Each request is logged, whatever its result.
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
            " AND tablename <> 'audit_accessevent'"
        )
        tables = [name for (name,) in cursor.fetchall()]
        # Except the last use of a key: the tenant's own is used here.
        digest = (
            "SELECT '{0}', md5(string_agg(row, ' ' ORDER BY row)) FROM"
            " (SELECT (to_jsonb(t) - 'last_used_at')::text AS row FROM \"{0}\" AS t) AS rows"
        )
        cursor.execute(" UNION ALL ".join(digest.format(table) for table in tables))
        digests = dict(cursor.fetchall())
    return {"tables": digests, "windows": windows}


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


def ask(case: Case, method: str, owner: SeedData, program: Program, **options: Any) -> Any:
    """Send the case's request with the ids of one tenant, as a program of this or another."""
    if case.body is not None:
        options |= {"data": json_bytes(case.body(owner)), "content_type": "application/json"}
    return program.request(method, case.path(owner), **options)


def assert_no_secret(response: Any, case: Case, owner: SeedData) -> None:
    request = case.path(owner) + ("" if case.body is None else json.dumps(case.body(owner)))
    answer = response.content.decode() + str(dict(response.headers))
    assert [secret for secret in secrets_of(owner, request) if secret in answer] == []


def test_every_route_and_method_has_a_case() -> None:
    assert routes() == set(CASES)


@pytest.mark.parametrize(("route", "method"), ROUTES)
def test_objects_of_another_tenant_are_not_found(world: World, route: str, method: str) -> None:
    case = CASES[route, method]
    attacker = world.attacker.program
    forwarded = {
        "X-Forwarded-Host": world.victims_host,
        "Forwarded": f"host={world.victims_host}",
        "X-Tenant": world.victim.program.tenant.slug,
    }
    for headers in ({}, forwarded):
        response = ask(case, method, world.victim, attacker, headers=headers)
        assert response.status_code == case.foreign, response.content
        assert_no_secret(response, case, world.victim)


@pytest.mark.parametrize(("route", "method"), ROUTES)
def test_every_route_requires_a_key(world: World, route: str, method: str) -> None:
    case = CASES[route, method]
    victim, attacker = world.victim.program, world.attacker.program
    moved = attacker.key.replace(attacker.tenant.id.hex, victim.tenant.id.hex)
    sent = {"X-CSRFToken": "a" * 32}
    doors = {
        "a foreign key on the tenant's host": (attacker.key, world.victims_host, Client()),
        "a key that says it is the tenant's": (moved, "localhost", Client()),
        "the same on its host": (moved, world.victims_host, Client()),
        "a foreign cookie on the tenant's host": ("", world.victims_host, world.browser),
        "a foreign cookie on the neutral host": ("", "localhost", world.browser),
        "nothing": ("", world.victims_host, Client()),
    }
    for door, (key, host, client) in doors.items():
        headers = {"Host": host, **sent, **({"Authorization": f"Bearer {key}"} if key else {})}
        options: dict[str, Any] = {"headers": headers}
        if case.body is not None:
            options |= {
                "data": json_bytes(case.body(world.victim)),
                "content_type": "application/json",
            }
        response = client.generic(method, case.path(world.victim), **options)
        assert (door, response.status_code) == (door, 401)
        assert_no_secret(response, case, world.victim)


LISTS = sorted(LONG)


@pytest.mark.parametrize("route", LISTS)
def test_cursor_of_another_tenant_is_refused(world: World, route: str) -> None:
    attacker, address = world.attacker.program, LONG[route](world.attacker)
    for seed, status in ((world.victim, 404), (world.attacker, 200)):
        following = next_page(seed.program, LONG[route](seed))
        cursor = parse_qs(urlsplit(following).query)["cursor"][0]
        joint = "&" if "?" in address else "?"
        response = attacker.get(f"{address}{joint}{urlencode({'cursor': cursor})}")
        assert response.status_code == status, response.content


def next_page(program: Program, address: str) -> str:
    """Return the address of the second page, with one row a page."""
    joint = "&" if "?" in address else "?"
    following: str | None = program.get(f"{address}{joint}limit=1").json()["next"]
    assert following is not None
    return following


def test_every_list_can_be_paged() -> None:
    paths = described()["paths"]
    paged = {
        operation["operationId"]
        for path in paths.values()
        for operation in path.values()
        for parameter in operation.get("parameters", [])
        if parameter["name"] == "cursor"
    }
    assert len(paged) == len(LONG)


@pytest.mark.parametrize(("route", "method"), ROUTES)
@pytest.mark.parametrize("bound", ["user", "agent"])
def test_bound_key_reads_and_changes_only_its_own_data(
    world: World, route: str, method: str, bound: str
) -> None:
    case, seed = CASES[route, method], world.victim
    response = ask(case, method, seed, world.narrow_programs[bound])
    assert response.status_code in (case.narrow, 422, 404), response.content
    text = response.content.decode()
    assert "heliotrope" not in text
    if response.status_code == 200:
        assert '"maria"' not in text
