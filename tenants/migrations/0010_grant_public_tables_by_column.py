"""Let the application write of public tables what it must, and nothing else.

Operators rename, suspend and resume a tenant in their admin. How far its schema is, and its
removal, are the owner's. The number of a claim is Postgres' to give: a tenant could take others'.
"""

from django.db import migrations

ALL = "INSERT, UPDATE, DELETE"
# What is granted, and what was before.
GRANTS = {
    "tenants_tenant": ("INSERT, UPDATE (name, state)", ALL),
    "tenants_domain": ("INSERT, UPDATE (domain, is_primary, tenant_id), DELETE", ALL),
    "tenants_operatorevent": ("INSERT", "INSERT"),
    "tenants_workspaceclaim": (
        "INSERT (channel, workspace, tenant_id, created_at), DELETE",
        "INSERT, DELETE",
    ),
    "auth_user": (
        "INSERT, UPDATE (password, last_login, is_superuser, username, first_name, last_name,"
        " email, is_staff, is_active, date_joined), DELETE",
        ALL,
    ),
    "auth_group": ("INSERT, UPDATE (name), DELETE", ALL),
    "auth_group_permissions": ("INSERT, DELETE", ALL),
    "auth_user_groups": ("INSERT, DELETE", ALL),
    "auth_user_user_permissions": ("INSERT, DELETE", ALL),
    # Rows are deleted with the person who made them.
    "django_admin_log": ("INSERT, DELETE", ALL),
    "django_session": ("INSERT, UPDATE (session_data, expire_date), DELETE", ALL),
}


def _grant(table: str, granted: str, before: str) -> migrations.RunSQL:
    def only(privileges: str) -> str:
        return (
            f"REVOKE {ALL} ON public.{table} FROM konstruct_app;"
            f" GRANT {privileges} ON public.{table} TO konstruct_app"
        )

    return migrations.RunSQL(only(granted), only(before))


class Migration(migrations.Migration):
    dependencies = [("tenants", "0009_record_schemas")]

    operations = [_grant(table, *privileges) for table, privileges in GRANTS.items()]
