"""Tenants on three servers: every access uses the tenant's own server, with the same isolation."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, ProgrammingError, close_old_connections
from django.test import Client

from konstruct.api.auth.keys import issue_key
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.models import Agent
from tenants import context, jobs, transaction
from tenants.exceptions import InvalidTenant
from tenants.limits.quotas import Limit, Quota, set_limits
from tenants.management.base import SOME_TENANTS_FAILED
from tenants.models import Job, Tenant
from tenants.outages import ServerDown
from tenants.schemas import provisioning
from tenants.servers import MAIN
from tests import database
from tests.jobs import claimed, expire_leases
from tests.servers.postgres import Server

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def placed(further: dict[str, Server]) -> Iterator[dict[str, Tenant]]:
    """A tenant on each server, with its name, and an agent with the same name."""
    made = {}
    with database.as_owner():
        for server in (MAIN, *further):
            made[server] = provisioning.create_tenant(slug=f"on-{server}", server=server)
    for server, tenant in made.items():
        with context.tenant_scope(tenant.id):
            create_agent(tenant_id=tenant.id, name=server)
    yield made
    with database.as_owner():
        for tenant in Tenant.objects.filter(slug__startswith="on-"):
            provisioning.delete_tenant(tenant)


def test_a_tenants_rows_are_on_its_server_alone(
    placed: dict[str, Tenant], further: dict[str, Server]
) -> None:
    for server, tenant in placed.items():
        with context.tenant_scope(tenant.id):
            assert (context.current_server(), context.current_tenant_id()) == (server, tenant.id)
            assert [agent.name for agent in Agent.objects.all()] == [server]
            with context.connection.cursor() as cursor:
                cursor.execute("SELECT name FROM orchestrator_agent")
                assert cursor.fetchall() == [(server,)]
    for name, server in further.items():
        schemas = server.ask("SELECT nspname FROM pg_namespace WHERE nspname ~ '^t_'")
        assert schemas == [(placed[name].schema_name,)]
        assert server.ask("SELECT count(*) FROM tenants_tenant") == [(0,)]


def test_each_server_has_a_pool_of_its_own(placed: dict[str, Tenant]) -> None:
    def free() -> list[int]:
        return [pool.get_stats()["pool_available"] for pool in pools.values()]

    with database.pools(1) as pools:
        assert list(pools) == [MAIN, "eu1", "eu2"]
        for server, tenant in placed.items():
            with context.tenant_scope(tenant.id):
                assert [agent.name for agent in Agent.objects.all()] == [server]
        assert free() == [0, 0, 0]
        with context.tenant_scope(placed["eu1"].id):
            with context.release_connections():
                assert free() == [1, 1, 1]
                assert context.current_tenant_id() == placed["eu1"].id
            assert [agent.name for agent in Agent.objects.all()] == ["eu1"]
            with (
                transaction.atomic(),
                pytest.raises(ProgrammingError, match="open on the connection to 'eu1'"),
                context.release_connections(),
            ):
                pass
        assert free() == [1, 0, 1]


def test_the_walls_are_the_same_on_every_server(placed: dict[str, Tenant]) -> None:
    with database.as_owner():
        others = {
            server: provisioning.create_tenant(slug=f"on-{server}-too", server=server)
            for server in placed
        }
    for server, tenant in placed.items():
        victim = others[server]
        with context.tenant_scope(victim.id):
            create_agent(tenant_id=victim.id, name="secret")
        with context.tenant_scope(tenant.id), context.connection.cursor() as cursor:
            cursor.execute(f"SELECT name FROM {victim.schema_name}.orchestrator_agent")
            assert cursor.fetchall() == []
            with pytest.raises(DatabaseError, match="permission denied"):
                cursor.execute("SELECT set_config('app.current_tenant', 'x', false)")
            with pytest.raises(DatabaseError, match="row-level security"):
                cursor.execute(
                    "INSERT INTO tenants_job (tenant_id, kind, key)"
                    " VALUES (%s, 'reply', gen_random_uuid())",
                    [victim.id],
                )


def test_requests_find_their_tenant_by_host_and_by_key(placed: dict[str, Tenant]) -> None:
    for server, tenant in placed.items():
        with context.tenant_scope(tenant.id):
            _, key = issue_key(tenant_id=tenant.id, name="test")
        for host in (f"on-{server}.localhost", "localhost"):
            answer = _agents(host, key)
            assert [agent["name"] for agent in answer.json()["results"]] == [server]


def _agents(host: str, key: Any) -> Any:
    close_old_connections()  # as before each request that is not a test's
    return Client(headers={"host": host, "authorization": f"Bearer {key}"}).get("/api/v1/agents/")


def test_work_is_claimed_from_the_outbox_of_its_server(
    placed: dict[str, Tenant], monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = jobs.JobKind(name="note", do="", queue="notes")
    woken: list[str] = []
    monkeypatch.setattr(jobs.JobKind, "wake", lambda kind, server, **options: woken.append(server))
    try:
        for tenant in placed.values():
            with context.tenant_scope(tenant.id):
                notes.enqueue(tenant.id)
        assert woken == [MAIN, "eu1", "eu2"]
        assert jobs.sweep() == 3
        assert sorted(woken) == sorted([MAIN, "eu1", "eu2"] * 2)
        for server, tenant in placed.items():
            assert jobs.claim(notes, server).key == tenant.id  # type: ignore[union-attr]
            assert jobs.claim(notes, server) is None
        provisioning.suspend_tenant(placed["eu1"])
        with context.tenant_scope(placed["eu1"].id):
            assert expire_leases() == 1
        assert jobs.claim(notes, "eu1") is None
        provisioning.resume_tenant(placed["eu1"])
        assert claimed(notes) == [placed["eu1"].id]
    finally:
        del jobs.KINDS["note"]
        for tenant in placed.values():
            with context.tenant_scope(tenant.id):
                Job.objects.all().delete()


def test_new_tenant_is_created_on_the_open_server_with_the_fewest(
    placed: dict[str, Tenant], settings: Any
) -> None:
    settings.TENANT_DATABASES_CLOSED = [MAIN, "eu1"]
    assert Tenant.objects.least_used_server() == "eu2"
    with database.as_owner():
        with pytest.raises(CommandError, match="the server 'eu1' takes no new tenants"):
            call_command("create_tenant", "on-nothing", server="eu1")
        with pytest.raises(InvalidTenant, match="no server is called 'us1'"):
            provisioning.create_tenant(slug="on-nothing", server="us1")
        assert provisioning.create_tenant(slug="on-any").server == "eu2"
        with pytest.raises(InvalidTenant, match="exists already"):
            provisioning.create_tenant(slug="on-any", server="eu2")
    settings.TENANT_DATABASES_CLOSED = [MAIN, "eu1", "eu2"]
    with pytest.raises(InvalidTenant, match="no server takes new tenants"):
        Tenant.objects.least_used_server()


def test_a_server_that_is_down_is_its_tenants_matter_alone(
    placed: dict[str, Tenant], further: dict[str, Server], capsys: pytest.CaptureFixture[str]
) -> None:
    keys = {}
    for server, tenant in placed.items():
        with context.tenant_scope(tenant.id):
            _, keys[server] = issue_key(tenant_id=tenant.id, name="test")
    asleep = placed["eu2"]
    with database.as_owner():
        Tenant.objects.filter(pk=asleep.pk).update(migrated_to="")
    with context.tenant_scope(asleep.id):
        Job.objects.create(kind="reply", key=asleep.id)
    further["eu2"].stop()
    try:
        checks = Client(headers={"host": "localhost"}).get("/health/ready").json()["checks"]
        assert (checks["database"], checks["migrations"]) == ("ok", "ok")
        with database.as_owner(), pytest.raises(CommandError) as not_reached:
            call_command("migrate", parallel=1)
        assert not_reached.value.returncode == SOME_TENANTS_FAILED
        there = sorted(Tenant.objects.filter(server="eu2").values_list("slug", flat=True))
        assert f"tenants not migrated: {', '.join(there)}. Remove" in str(not_reached.value)
        errors = capsys.readouterr().err
        assert errors.count("its server's public schema was not migrated") == len(there)
        # No process sweeps the jobs there, and they do not block the jobs elsewhere.
        for server in (MAIN, "eu1"):
            assert jobs.claim(jobs.KINDS["reply"], server) is None
        jobs.sweep()
        with database.as_owner():
            Tenant.objects.filter(pk=asleep.pk).update(migrated_to=asleep.migrated_to)
        for host in ("on-eu2.localhost", "localhost"):
            refused = _agents(host, keys["eu2"])
            assert (refused.status_code, refused["Retry-After"]) == (503, "5")
        page = Client(headers={"host": "on-eu2.localhost"}).get("/admin/")
        assert (page.status_code, page["Retry-After"]) == (503, "5")
        assert page.content.decode().startswith("This service is not available at the moment")
        for server in (MAIN, "eu1"):
            assert _agents("localhost", keys[server]).status_code == 200
        with pytest.raises(ServerDown), context.tenant_scope(placed["eu2"].id):
            Agent.objects.count()
    finally:
        further["eu2"].start()
    assert _agents("localhost", keys["eu2"]).status_code == 200
    assert claimed(jobs.KINDS["reply"]) == [asleep.id]
    with database.as_owner():
        Tenant.objects.filter(pk=asleep.pk).update(migrated_to="")
        call_command("migrate", parallel=1)
        asleep.refresh_from_db()
    assert asleep.migrated_to == placed["eu1"].migrated_to


def test_requests_are_limited_by_the_tenants_own_row_on_each_server(
    placed: dict[str, Tenant], settings: Any
) -> None:
    settings.RATE_LIMIT_PER_SECOND, settings.RATE_LIMIT_BURST = 100, 400
    client = Client(headers={"Host": "localhost"})
    keys = {
        server: str(issue_key(tenant_id=tenant.id, name="limited")[1])
        for server, tenant in placed.items()
    }

    def limits() -> dict[str, str]:
        return {
            server: client.get("/api/v1/agents/", headers={"Authorization": f"Bearer {key}"})[
                "RateLimit-Limit"
            ]
            for server, key in keys.items()
        }

    before = limits()
    assert len(set(before.values())) == 1
    for server, per_second in (("eu1", 1), ("eu2", 200)):
        limit = Limit(hard=Decimal(per_second))
        set_limits(placed[server].id, {Quota.REQUESTS: limit})
    after = limits()
    usual = int(before[MAIN])
    assert after == {MAIN: str(usual), "eu1": str(usual // 100), "eu2": str(usual * 2)}
