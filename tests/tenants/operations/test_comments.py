"""Each table and column has a comment in the database, for readers there."""

import pytest
from django.apps import apps

from tenants.context import connection, public_scope, tenant_scope
from tenants.models import Tenant

PROJECT_APPS = ("tenants", "memory", "orchestrator", "api", "channels", "audit")

_UNCOMMENTED = """
SELECT c.relname, a.attname FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum >= 0 AND NOT a.attisdropped
WHERE c.relnamespace = %s::regnamespace AND c.relname = ANY(%s)
  AND col_description(c.oid, a.attnum) IS NULL
UNION ALL
SELECT c.relname, '' FROM pg_class AS c
WHERE c.relnamespace = %s::regnamespace AND c.relname = ANY(%s)
  AND obj_description(c.oid, 'pg_class') IS NULL
"""


def uncommented(schema: str, *, public: bool) -> list[tuple[str, str]]:
    tables = [
        model._meta.db_table
        for label in PROJECT_APPS
        for model in apps.get_app_config(label).get_models(include_auto_created=True)
        if (label == "tenants") == public
    ]
    with connection.cursor() as cursor:
        cursor.execute(_UNCOMMENTED, [schema, tables, schema, tables])
        return sorted(cursor.fetchall())


def test_every_column_of_a_tenant_has_a_comment(tenant_a: Tenant) -> None:
    with tenant_scope(tenant_a.id):
        assert uncommented(tenant_a.schema_name, public=False) == []


@pytest.mark.django_db
def test_every_shared_column_has_a_comment() -> None:
    with public_scope():
        assert uncommented("public", public=True) == []
