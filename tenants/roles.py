"""The two database roles, and the commands that need the owner's role."""

# Migrates, provisions and erases; owns every table.
OWNER_ROLE = "konstruct_owner"
# Web and workers: owns nothing, cannot bypass row-level security.
APP_ROLE = "konstruct_app"

# manage.py connects these as the owner and everything else as the application.
OWNER_COMMANDS = frozenset(
    {
        "backup",
        "create_tenant",
        "delete_tenant",
        "demo",
        "erase_user",
        "make_schema_script",
        "migrate",
        "migrate_schemas",
        "move_tenant",
        "owner_worker",
        "reindex_words",
        "restore",
        "set_up_tenant",
        "sqlmigrate",
        "verify_backup",
        "verify_memory",
    }
)
