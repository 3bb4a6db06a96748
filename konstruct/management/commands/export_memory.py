"""manage.py export_memory: export a tenant's or a person's memory into one file."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from konstruct.privacy.archive.exporting import export_memory
from tenants.audit.access_log import record_command
from tenants.audit.models import Action
from tenants.context import tenant_scope
from tenants.management.base import KonstructCommand, tenant_of


class Command(KonstructCommand):
    """Writes a new archive."""

    help = (
        "Exports the memory of a tenant, or of one user, into one SQLite file, which can be "
        "searched offline (memory.archive.MemoryManager) and imported with import_memory."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="Tenant of the memory.")
        parser.add_argument("--user", help="Export the data of one user only.")
        parser.add_argument("file", metavar="FILE", type=Path, help="File to create.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["tenant"])
        with tenant_scope(tenant.id):
            # Before anything is read: a partial export has been read too.
            record_command(self.name, Action.EXPORT, "memory", user_id=options["user"])
        manifest = export_memory(
            tenant,
            options["file"],
            user_id=options["user"],
            say=lambda kind, rows: self.stdout.write(f"  {rows} {kind}"),
        )
        self.stdout.write(f"exported to {options['file']}; digest {manifest.digest}")
