"""Let a tenant read its own rows of the public schema, and change or remove none of them.

The policies there say who sees a row, which for a DELETE was all that was asked. And nobody but the
owner writes what migrate has written.
"""

from django.db import migrations

from tenants.postgresql.expressions import CURRENT_TENANT

OPERATORS_ROWS = ("tenants_tenant", "tenants_domain")
MIGRATED = ("django_migrations", "django_content_type", "auth_permission")


def _restrict(table: str) -> migrations.RunSQL:
    return migrations.RunSQL(
        f"CREATE POLICY operators_delete ON public.{table} AS RESTRICTIVE FOR DELETE"
        f" USING ((SELECT {CURRENT_TENANT}) IS NULL)",
        f"DROP POLICY operators_delete ON public.{table}",
    )


def _read_only(table: str) -> migrations.RunSQL:
    privileges = f"INSERT, UPDATE, DELETE ON public.{table}"
    return migrations.RunSQL(
        f"REVOKE {privileges} FROM konstruct_app", f"GRANT {privileges} TO konstruct_app"
    )


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0007_let_tenants_lock_and_note"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        *(_restrict(table) for table in OPERATORS_ROWS),
        *(_read_only(table) for table in MIGRATED),
    ]
