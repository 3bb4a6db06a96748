"""manage.py backup: back up tenants into a folder."""

import os
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.template.defaultfilters import filesizeformat

from konstruct.backups.dumping import back_up, remove_old
from tenants import journal, models
from tenants.audit.operator_log import record_command
from tenants.management.base import SOME_TENANTS_FAILED, KonstructCommand, UsageError, tenant_of


class Command(KonstructCommand):
    """Makes a backup with pg_dump, as the owner's role."""

    help = (
        "Backs up all tenants, or the given ones, into a new folder in DIRECTORY. Each tenant is "
        "consistent at one time. Exit status 4 if some tenants could not be backed up."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "directory",
            type=Path,
            metavar="DIRECTORY",
            help="Directory in which the folder is created.",
        )
        parser.add_argument(
            "--tenant", action="append", metavar="SLUG", help="One tenant; may be repeated."
        )
        parser.add_argument(
            "--keep-days",
            type=int,
            metavar="N",
            help="Afterwards remove older backups from DIRECTORY, except the newest one.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        tenants = models.Tenant.objects.provisioned().exclude(state=models.Tenant.State.RESTORING)
        if options["tenant"]:
            tenants = tenants.filter(pk__in=[tenant_of(slug).pk for slug in options["tenant"]])
            if tenants.count() < len(set(options["tenant"])):
                raise UsageError("a tenant that is being restored cannot be backed up")
        if options["keep_days"] is not None and options["keep_days"] < 1:
            raise UsageError("--keep-days must be at least 1")
        os.umask(0o077)
        started = time.monotonic()
        backup = back_up(options["directory"], list(tenants.order_by("slug")))
        record_command(self.name, "create", "backup", folder=backup.path.name, failed=backup.failed)
        self.stdout.write(
            f"{backup.path}: {len(backup.tenants)} tenants, {filesizeformat(backup.bytes)},"
            f" {time.monotonic() - started:.1f} s"
        )
        if not journal.is_enabled():
            self.stderr.write(
                "ERASURE_JOURNAL is not set: people who are erased from now on come back with this "
                "backup"
            )
        if options["keep_days"] is not None:
            for path in remove_old(options["directory"], days=options["keep_days"]):
                self.stdout.write(f"removed {path}")
        if backup.failed:
            reasons = "; ".join(f"{slug}: {reason}" for slug, reason in backup.failed.items())
            raise CommandError(f"not backed up: {reasons}", returncode=SOME_TENANTS_FAILED)
