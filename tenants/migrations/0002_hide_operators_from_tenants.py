"""The public schema ends every search_path: its rows are hidden from whoever is in a tenant."""

from django.db import migrations

from tenants.operations.policies import HideFromTenants

OPERATORS_TABLES = [
    "auth_group",
    "auth_group_permissions",
    "auth_user",
    "auth_user_groups",
    "auth_user_user_permissions",
    "django_admin_log",
    "django_session",
]


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0001_initial"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("sessions", "0001_initial"),
    ]

    operations = [
        *(HideFromTenants(table) for table in OPERATORS_TABLES),
        HideFromTenants("tenants_tenant", own_rows="id = {current_tenant}"),
        HideFromTenants("tenants_domain", own_rows="tenant_id = {current_tenant}"),
    ]
