"""Claims of workspaces: one tenant each, found from outside, and not transferable."""

import pytest
from django.db import DatabaseError

from tenants import transaction
from tenants.context import connection, public_scope, tenant_scope
from tenants.exceptions import NotInTenant, WorkspaceTaken
from tenants.models import Tenant, WorkspaceClaim
from tenants.schemas import provisioning
from tenants.serving import claim_workspace, release_workspace
from tests.database import MakeTenant, as_owner
from tests.stored import tenant_of_workspace


def test_a_workspace_is_claimed_by_one_tenant_until_it_is_released(
    tenant_a: Tenant, tenant_b: Tenant
) -> None:
    assert tenant_of_workspace("slack", "T1") is None
    with tenant_scope(tenant_a.id):
        claim_workspace("slack", "T1")
        claim_workspace("slack", "T1")
    with tenant_scope(tenant_b.id):
        claim_workspace("mail", "T1")
        with pytest.raises(WorkspaceTaken, match="slack workspace T1 is connected elsewhere"):
            claim_workspace("slack", "T1")
        release_workspace("slack", "T1")
    assert tenant_of_workspace("slack", "T1") == tenant_a.id
    with tenant_scope(tenant_a.id):
        release_workspace("slack", "T1")
    with tenant_scope(tenant_b.id):
        claim_workspace("slack", "T1")
    assert tenant_of_workspace("slack", "T1") == tenant_b.id


def test_a_claim_is_made_inside_a_tenant_alone(db: None) -> None:
    with pytest.raises(NotInTenant):
        claim_workspace("slack", "T1")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO tenants_workspaceclaim (channel, workspace, tenant_id)"
        " VALUES ('slack', 'T2', '{victim}')",
        "UPDATE tenants_workspaceclaim SET tenant_id = '{attacker}'",
        "UPDATE tenants_workspaceclaim SET workspace = 'T9'",
        "TRUNCATE tenants_workspaceclaim",
    ],
)
@pytest.mark.parametrize("inside", [True, False])
def test_no_sql_claims_for_another_or_changes_a_claim(
    tenant_a: Tenant, tenant_b: Tenant, statement: str, inside: bool
) -> None:
    with tenant_scope(tenant_b.id):
        claim_workspace("slack", "T1")
    text = statement.format(victim=tenant_b.id, attacker=tenant_a.id)
    scope = tenant_scope(tenant_a.id) if inside else public_scope()
    with scope, pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(text)
    assert tenant_of_workspace("slack", "T1") == tenant_b.id


def test_another_tenants_claim_is_neither_seen_nor_removed(
    tenant_a: Tenant, tenant_b: Tenant
) -> None:
    with tenant_scope(tenant_b.id):
        claim_workspace("slack", "T1")
    with tenant_scope(tenant_a.id):
        assert not WorkspaceClaim.objects.exists()
        assert WorkspaceClaim.objects.all().delete() == (0, {})
    with public_scope(), connection.cursor() as cursor:
        # The application removes nothing without a tenant.
        cursor.execute("DELETE FROM tenants_workspaceclaim")
        assert cursor.rowcount == 0
    assert tenant_of_workspace("slack", "T1") == tenant_b.id


@pytest.mark.django_db(transaction=True)
def test_deleted_tenant_has_no_claims(make_tenant: MakeTenant) -> None:
    tenant = make_tenant()
    with tenant_scope(tenant.id):
        claim_workspace("slack", "T1")
    with as_owner():
        provisioning.delete_tenant(tenant)
    assert tenant_of_workspace("slack", "T1") is None
