"""Django's own tables in a tenant's schema: a tenant, a policy, and the grants that they need."""

from django.db import migrations

from tenants.operations.policies import AddTenantColumn, ForceRowLevelSecurity, GrantToApp

# What the application may do besides SELECT. Content types and permissions are written by migrate
# alone. The admin's log is append-only, so whoever has an entry in it is deactivated, not deleted.
TABLES = {
    "auth_group": ("INSERT", "UPDATE", "DELETE"),
    "auth_group_permissions": ("INSERT", "UPDATE", "DELETE"),
    "auth_permission": (),
    "auth_user": ("INSERT", "UPDATE", "DELETE"),
    "auth_user_groups": ("INSERT", "UPDATE", "DELETE"),
    "auth_user_user_permissions": ("INSERT", "UPDATE", "DELETE"),
    "django_admin_log": ("INSERT",),
    "django_content_type": (),
    "django_migrations": (),
    "django_session": ("INSERT", "UPDATE", "DELETE"),
}


class Migration(migrations.Migration):
    dependencies = [
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("sessions", "0001_initial"),
    ]

    operations = [
        operation
        for table, privileges in TABLES.items()
        for operation in (
            AddTenantColumn(table),
            ForceRowLevelSecurity(table),
            *([GrantToApp(table, *privileges)] if privileges else []),
        )
    ]
