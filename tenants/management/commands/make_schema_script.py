"""manage.py make_schema_script: write the script that creates the schema of a new tenant."""

import io
import re
from typing import Any, Final
from uuid import UUID

from tenants import context, naming, operations, postgres_tools, servers
from tenants.management.base import KonstructCommand
from tenants.schemas.migrating import FILE, SCHEMA, TENANT, MigrateSchema

# The id of the schema that is migrated for the script. No tenant has it.
TEMPLATE_ID: Final = UUID("5e5f3c1a-7d0b-4c57-9a1e-2f7d3b8c6e40")
TEMPLATE_SCHEMA: Final = naming.schema_name_of(TEMPLATE_ID)
# Comments, commands of psql, and settings of the session.
_LEFT_OUT: Final = re.compile(r"--|\\|SET |SELECT pg_catalog\.set_config|$")
_TIME: Final = re.compile(r"'\d{4}-\d\d-\d\d \d\d:\d\d:[^']*'")


class Command(KonstructCommand):
    """For contributors, after each change of a migration or of what migrate writes."""

    help = (
        "Writes the SQL script that creates the schema of a new tenant, from a schema that Django "
        "migrates for this and that is dropped. For contributors, after a change of migrations."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        script = make_script()
        FILE.write_text(script)
        self.stdout.write(f"{FILE}: {len(script.splitlines())} lines")


def make_script() -> str:
    """Migrate a schema with Django, and return the script that creates an equal one.

    Raises:
        ToolFailed: pg_dump failed.
    """
    connection = context.tenant_connection()
    drop = f"DROP SCHEMA IF EXISTS {TEMPLATE_SCHEMA} CASCADE"
    with context.public_scope():
        try:
            context.execute(f"{drop}; CREATE SCHEMA {TEMPLATE_SCHEMA}")
            connection.set_schema(TEMPLATE_SCHEMA)
            MigrateSchema(stdout=io.StringIO(), no_color=True).run()
            operations.enforce_rls(connection)
            with postgres_tools.session_on(servers.MAIN) as session:
                options = ("--rows-per-insert=1000", "--no-owner")
                dump = postgres_tools.dump_schema(session, TEMPLATE_ID, TEMPLATE_SCHEMA, *options)
        finally:
            connection.set_schema_to_public()
            context.execute(drop)
    lines = [line for line in dump.splitlines() if not _LEFT_OUT.match(line)]
    script = _TIME.sub("now()", "\n".join(lines))
    return script.replace(TEMPLATE_SCHEMA, SCHEMA).replace(str(TEMPLATE_ID), TENANT) + "\n"
