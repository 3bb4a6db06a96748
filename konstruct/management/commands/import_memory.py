"""manage.py import_memory: import an archive into a tenant."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from konstruct.privacy.archive.importing import import_memory
from tenants import context, transaction
from tenants.audit import access_log, models
from tenants.management.base import KonstructCommand, tenant_of


class Command(KonstructCommand):
    """Validates the file, then imports all of it or nothing."""

    help = (
        "Imports a file of export_memory into a tenant, completely or not at all. Existing rows "
        "stay, so that the command can be run again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--tenant", required=True, metavar="SLUG", help="Tenant that gets the memory."
        )
        parser.add_argument(
            "--digest",
            default="",
            help="Digest that export_memory printed; refuse any other archive.",
        )
        parser.add_argument("file", metavar="FILE", type=Path, help="The archive.")

    def handle(self, *args: Any, **options: Any) -> None:
        imported: dict[str, int] = {}

        def say(kind: str, new: int, rows: int) -> None:
            imported[kind] = new
            self.stdout.write(f"  {new} of {rows} {kind} are new")

        tenant = tenant_of(options["tenant"])
        with context.tenant_scope(tenant.id), transaction.atomic():
            manifest = import_memory(
                tenant, options["file"], expected_digest=options["digest"], say=say
            )
            access_log.record_command(self.name, models.Action.IMPORT, "memory", new=imported)
        self.stdout.write(
            f"imported {options['file']}, exported from {manifest.tenant}"
            f" at {manifest.exported_at.isoformat()}"
        )
