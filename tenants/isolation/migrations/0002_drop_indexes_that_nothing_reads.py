"""Indexes that Django gives its tables, and that no statement of ours reads: 8 kB a tenant each.

Those called `_like` serve LIKE on names. Of those on foreign keys some are the first column of a
unique index, and others lead from a permission or a group to who has it, which a few rows tell as
soon.
"""

from django.db import migrations

from tenants.operations.indexes import DropIndex

INDEXES = {
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
    dependencies = [("isolation", "0001_protect_django_tables")]

    operations = [DropIndex(table, name, columns) for name, (table, columns) in INDEXES.items()]
