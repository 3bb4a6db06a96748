"""Django's own tables in a tenant's schema: a tenant, a policy, the grants that they need; and no
index of Django's that no statement reads, here and in our tables.
"""

from django.db import migrations

from tenants.operations import AddTenantColumn, DropIndex, protect_tables

# What the application may do besides SELECT. Content types and permissions are written by migrate
# alone. The admin's log is append-only, so a person with an entry in it is deactivated, not deleted.
PRIVILEGES = {
    "auth_group": ["INSERT", "UPDATE", "DELETE"],
    "auth_group_permissions": ["INSERT", "UPDATE", "DELETE"],
    "auth_permission": [],
    "auth_user": ["INSERT", "UPDATE", "DELETE"],
    "auth_user_groups": ["INSERT", "UPDATE", "DELETE"],
    "auth_user_user_permissions": ["INSERT", "UPDATE", "DELETE"],
    "django_admin_log": ["INSERT"],
    "django_content_type": [],
    "django_migrations": [],
    "django_session": ["INSERT", "UPDATE", "DELETE"],
}
# 8 kB a tenant each. Those called `_like` serve LIKE on names. Of those on foreign keys some are the
# first column of a unique index, and others lead from a permission or a group to its members, which
# a few rows tell as soon.
INDEXES = {
    "audit_person_user_id_895f8d2e_like": ("audit_person", "user_id text_pattern_ops"),
    "auth_group_name_a6ea08ec_like": ("auth_group", "name varchar_pattern_ops"),
    "auth_group_permissions_group_id_b120cbf9": ("auth_group_permissions", "group_id"),
    "auth_group_permissions_permission_id_84c5c92e": ("auth_group_permissions", "permission_id"),
    "auth_permission_content_type_id_2f476e4b": ("auth_permission", "content_type_id"),
    "auth_user_groups_group_id_97559544": ("auth_user_groups", "group_id"),
    "auth_user_groups_user_id_6a12ed8b": ("auth_user_groups", "user_id"),
    "auth_user_user_permissions_permission_id_1fbb5f2c": (
        "auth_user_user_permissions",
        "permission_id",
    ),
    "auth_user_user_permissions_user_id_a95ead1b": ("auth_user_user_permissions", "user_id"),
    "auth_user_username_6821ab7c_like": ("auth_user", "username varchar_pattern_ops"),
    "django_session_session_key_c0390e0f_like": (
        "django_session",
        "session_key varchar_pattern_ops",
    ),
}


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("audit", "0001_initial"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("sessions", "0001_initial"),
    ]

    operations = [
        *(AddTenantColumn(table) for table in PRIVILEGES),
        *protect_tables(PRIVILEGES),
        *(DropIndex(table, name, columns) for name, (table, columns) in INDEXES.items()),
    ]
