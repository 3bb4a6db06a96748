"""manage.py verify_backup: check that a backup is complete, unchanged and readable."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any
from uuid import UUID

from django.template.defaultfilters import filesizeformat

from konstruct.backups.dumping import dump_name, format_moment, verify_backup
from tenants.management.base import KonstructCommand


class Command(KonstructCommand):
    """Reads all of a backup, and changes nothing."""

    help = (
        "Checks signature, digests and dumps of a backup, each of which has rows of its tenant "
        "alone. Lists the tenants with time, size and file."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, metavar="BACKUP", help="The folder of the backup.")

    def handle(self, *args: Any, **options: Any) -> None:
        manifest = verify_backup(options["path"])
        for entry in manifest["tenants"]:
            dump = dump_name(UUID(entry["id"]))
            self.stdout.write(
                f"{entry['slug']}: {format_moment(entry['as_of'])},"
                f" {filesizeformat(manifest['files'][dump]['bytes'])}, {dump}"
            )
        self.stdout.write(
            f"{options['path']} is whole: {len(manifest['tenants'])} tenants, begun at"
            f" {format_moment(manifest['began_at'])}"
        )
