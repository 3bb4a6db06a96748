"""Tenants of several servers are in one backup, and each is restored on its own server."""

from pathlib import Path
from typing import Any

import pytest

from konstruct.orchestrator.models import Agent
from tenants.context import server_scope, tenant_scope
from tenants.models import Tenant
from tenants.schemas.migrating import schema_exists
from tests.database import MakeTenant
from tests.konstruct.backups.conftest import run
from tests.servers.postgres import Server

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.data]


def agents(tenant: Tenant) -> list[str]:
    with tenant_scope(tenant.id):
        return list(Agent.objects.order_by("name").values_list("name", flat=True))


def test_each_tenant_is_restored_on_its_server(
    further: dict[str, Server], make_tenant: MakeTenant, tmp_path: Path, settings: Any
) -> None:
    journal = tmp_path / "erasures.jsonl"
    journal.touch()
    settings.ERASURE_JOURNAL = str(journal)
    here, there = make_tenant("here", server="default"), make_tenant("there", server="eu1")
    for tenant in (here, there):
        with tenant_scope(tenant.id):
            Agent.objects.create(name="before")
    output = run("backup", tmp_path, "--tenant", "here", "--tenant", "there")
    made = output.partition(":")[0]
    for tenant in (here, there):
        with tenant_scope(tenant.id):
            Agent.objects.create(name="later")
    run("restore", made, "--tenant", "there", "--yes")
    assert (agents(here), agents(there)) == (["before", "later"], ["before"])
    run("restore", made, "--all", "--yes")
    assert (agents(here), agents(there)) == (["before"], ["before"])
    with server_scope("eu1"):
        assert schema_exists(there.schema_name)
        assert not schema_exists(here.schema_name)
    placed = Tenant.objects.filter(slug__in=["here", "there"]).values_list("server", "state")
    assert set(placed) == {("default", "active"), ("eu1", "active")}
