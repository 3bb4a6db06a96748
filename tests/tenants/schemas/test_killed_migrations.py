"""After a kill at any moment, migrate and create_tenant continue, and produce equal schemas."""

import random
import subprocess
import time
from collections.abc import Callable

import pytest

from tenants.context import public_scope
from tenants.models import Tenant
from tenants.schemas import provisioning
from tenants.schemas.migrating import migrate_schema
from tests import database
from tests.tenants.schemas.catalogs import catalog, rows
from tests.tenants.schemas.histories import since, undo
from tests.tenants.schemas.test_provisioning_at_once import CREATE, MIGRATE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

# From the earlier one on, the tables of most apps are created.
LATER, EARLIER = ("channels", "0001_initial"), ("memory", "0001_initial")
TIMES = [1, pytest.param(100, marks=pytest.mark.long)]


@pytest.mark.parametrize("times", TIMES)
def test_a_killed_create_tenant_ends_in_an_equal_schema(
    start: Callable[..., "subprocess.Popen[str]"], times: int
) -> None:
    chance = random.Random(1)  # the only kill of make test comes early
    with database.as_owner():
        began = time.monotonic()
        expected = provisioning.create_tenant(slug="expected")
        takes = time.monotonic() - began
        expected_state = catalog(expected), rows(expected)
    cut_off = 0
    for number in range(times):
        slug = f"killed-{number}"
        process = start(CREATE, slug)
        time.sleep((number + chance.random()) / times * 2 * takes)
        process.kill()
        process.wait()
        with database.as_owner():
            tenant = Tenant.objects.filter(slug=slug).first()
            if tenant is None or tenant.state != Tenant.State.ACTIVE:
                cut_off += 1
                tenant = provisioning.create_tenant(slug=slug)
            assert (catalog(tenant), rows(tenant)) == expected_state, f"killed the {number}. time"
            provisioning.delete_tenant(tenant)
    assert cut_off


@pytest.mark.parametrize(
    ("times", "first_undone"), [(1, LATER), pytest.param(100, EARLIER, marks=pytest.mark.long)]
)
def test_a_killed_migrate_ends_in_equal_schemas(
    start: Callable[..., "object"], times: int, first_undone: tuple[str, str]
) -> None:
    chance = random.Random(7)
    with database.as_owner():
        expected = provisioning.create_tenant(slug="expected")
        undo(expected, since(*first_undone))
        began = time.monotonic()
        assert migrate_schema(expected.schema_name).error == ""
        takes = time.monotonic() - began
        expected_state = catalog(expected), rows(expected, numbered=False)
    cut_off = 0
    for number in range(times):
        with database.as_owner():
            tenants = [provisioning.create_tenant(slug=f"killed-{n}") for n in range(2)]
            for tenant in tenants:
                undo(tenant, since(*first_undone))
        process = start(MIGRATE)
        time.sleep((number + chance.random()) / times * 2 * takes)
        process.kill()
        process.wait()
        with database.as_owner(), public_scope():
            cut_off += Tenant.objects.filter(migrated_to="").exists()
            for tenant in tenants:
                assert migrate_schema(tenant.schema_name).error == ""
                found = catalog(tenant), rows(tenant, numbered=False)
                assert found == expected_state, f"killed the {number}. time"
                provisioning.delete_tenant(tenant)
    assert cut_off
