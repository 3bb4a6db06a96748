"""Privileges of the application in the public schema: the minimum, by command and column."""

import pytest
from django.db import DatabaseError

from tenants import transaction
from tenants.context import connection, tenant_scope
from tenants.models import Tenant, WorkspaceClaim

EVERY = "every column"
ALL_BUT_ID = "every column but id"
PERSON = {"INSERT": EVERY, "UPDATE": ALL_BUT_ID, "DELETE": EVERY}
LINK = {"INSERT": EVERY, "DELETE": EVERY}
WRITTEN = {
    "auth_group": PERSON,
    "auth_group_permissions": LINK,
    "auth_permission": {},
    "auth_user": PERSON,
    "auth_user_groups": LINK,
    "auth_user_user_permissions": LINK,
    "django_admin_log": LINK,
    "django_content_type": {},
    "django_migrations": {},
    "django_session": {"INSERT": EVERY, "UPDATE": "expire_date, session_data", "DELETE": EVERY},
    "tenants_domain": PERSON,
    "tenants_operatorevent": {"INSERT": EVERY},
    "tenants_job": {
        "INSERT": EVERY,
        "UPDATE": "attempts, begun_at, due_at, error_code, failed_at,"
        " held_for, lane, last_error, lease, leased_until, sweep_at, traceparent, worker",
        "DELETE": EVERY,
    },
    "tenants_schemastate": {},
    "tenants_tenant": {
        "INSERT": EVERY,
        "UPDATE": "deletion_asked_at, migration_asked_at, name, quotas, state, state_before, usage",
    },
    "tenants_worker": {},
    "tenants_workspaceclaim": {"INSERT": ALL_BUT_ID, "DELETE": EVERY},
}
COLUMN_PRIVILEGES = """
    SELECT c.relname, privilege, CASE
        WHEN has_table_privilege('konstruct_app', c.oid, privilege) THEN 'every column'
        WHEN bool_and(
            has_column_privilege('konstruct_app', c.oid, a.attnum, privilege) = (a.attname <> 'id')
        ) THEN 'every column but id'
        ELSE string_agg(a.attname, ', ' ORDER BY a.attname)
            FILTER (WHERE has_column_privilege('konstruct_app', c.oid, a.attnum, privilege))
        END
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid,
        (VALUES ('INSERT'), ('UPDATE')) AS of_columns (privilege)
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
      AND a.attnum > 0 AND NOT a.attisdropped
    GROUP BY c.oid, c.relname, privilege
"""
ROW_PRIVILEGES = """
    SELECT relname, 'DELETE', 'every column' FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
      AND has_table_privilege('konstruct_app', oid, 'DELETE')
"""


def test_every_public_table_is_written_as_far_as_it_is_listed(db: None) -> None:
    found: dict[str, dict[str, str]] = {}
    with connection.cursor() as cursor:
        cursor.execute(f"{COLUMN_PRIVILEGES} UNION ALL {ROW_PRIVILEGES}")
        for table, privilege, columns in cursor.fetchall():
            of_table = found.setdefault(table, {})
            if columns:
                of_table[privilege] = columns
    assert found == WRITTEN


@pytest.mark.django_db(transaction=True)
def test_number_of_a_claim_of_another_tenant_is_refused(tenant_a: Tenant, tenant_b: Tenant) -> None:
    with tenant_scope(tenant_a.id):
        claimed = WorkspaceClaim.objects.create(channel="slack", workspace="T1", tenant=tenant_a)
        with (
            connection.cursor() as cursor,
            pytest.raises(DatabaseError, match="permission denied"),
            transaction.atomic(),
        ):
            cursor.execute(
                "INSERT INTO tenants_workspaceclaim (id, channel, workspace, tenant_id)"
                " SELECT %s + n, 'slack', 'X' || n, %s FROM generate_series(1, 100) AS n",
                [claimed.pk, tenant_a.id],
            )
    with tenant_scope(tenant_b.id):
        assert WorkspaceClaim.objects.create(channel="slack", workspace="T2", tenant=tenant_b).pk
