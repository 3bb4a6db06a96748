"""manage.py restore: tenants from a backup, or the steps after a recovery of Postgres."""

from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.utils.dateparse import parse_datetime

from konstruct.backups.dumping import verify_backup
from konstruct.backups.files import Manifest, read_manifest
from konstruct.backups.restoring import (
    Restored,
    close,
    deleted_tenants,
    entries_from,
    entries_since,
    restore,
    restore_public,
    settle,
)
from tenants import journal
from tenants.exceptions import KonstructError
from tenants.management.base import (
    SOME_BEHIND,
    KonstructCommand,
    UsageError,
    require_confirmation,
)
from tenants.models import Tenant


class Command(KonstructCommand):
    """Restores tenants; run again, it completes what was interrupted."""

    help = (
        "Restores tenants of a backup in the place of what they are now, or as new ones. A tenant"
        " is served again when all that was erased since is erased again, and verify_memory finds"
        " nothing. With --recovered-to, does this for all tenants of a Postgres that was recovered"
        " to a moment. Exit status 4 if some tenants could not be restored."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "path", type=Path, nargs="?", metavar="BACKUP", help="The folder of the backup."
        )
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--tenant", metavar="SLUG", help="The tenant, as the backup calls it.")
        which.add_argument("--all", action="store_true", help="All tenants of the backup.")
        which.add_argument(
            "--recovered-to",
            metavar="TIME",
            help="No backup: Postgres was recovered to this moment, with its time zone.",
        )
        parser.add_argument(
            "--as", dest="slug", default="", metavar="SLUG", help="Another name for a new tenant."
        )
        parser.add_argument(
            "--server", default="", metavar="NAME", help="Database server for new tenants."
        )
        parser.add_argument(
            "--public",
            action="store_true",
            help="Also the operators, into a deployment without operators and tenants.",
        )
        parser.add_argument(
            "--undelete",
            action="store_true",
            help="Also tenants that were deleted after the backup was made.",
        )
        parser.add_argument(
            "--without-journal",
            action="store_true",
            help="Erase nothing again: there is no journal of erasures, or it is lost.",
        )
        parser.add_argument(
            "--repair", action="store_true", help="Repair what verify_memory finds."
        )
        parser.add_argument("--yes", action="store_true", help="Do not ask.")

    def handle(self, *args: Any, **options: Any) -> None:
        if bool(options["path"]) == bool(options["recovered_to"]):
            raise UsageError("give a backup, or --recovered-to")
        if options["slug"] and not options["tenant"]:
            raise UsageError("--as needs --tenant: it names one tenant")
        if not journal.is_kept() and not options["without_journal"]:
            raise UsageError(
                "ERASURE_JOURNAL is not set: whom you have erased since would come back. Set it, or"
                " pass --without-journal and erase them again yourself"
            )
        if options["recovered_to"]:
            self._recovered(_moment(options["recovered_to"]), options)
        else:
            self._restore(options["path"], options)

    def _restore(self, path: Path, options: dict[str, Any]) -> None:
        manifest = verify_backup(path) if options["all"] else read_manifest(path)
        chosen = self._chosen(manifest, options)
        entries = [] if options["without_journal"] else entries_since(manifest)
        if not (options["without_journal"] or manifest["keeps_journal"]):
            self.stderr.write(
                "There was no journal of erasures when this backup was made: what was erased before"
                " the journal began comes back"
            )
        existing = Tenant.objects.filter(pk__in=[entry["id"] for entry in chosen])
        if slugs := sorted(existing.values_list("slug", flat=True)):
            self._confirm(slugs, manifest["began_at"], options)
        if options["public"]:
            restore_public(path, manifest)
            self.stdout.write("the operators are restored")
        failed = []
        for entry in chosen:
            try:
                restored = restore(
                    path,
                    manifest,
                    entry,
                    entries,
                    slug=options["slug"],
                    server=options["server"],
                    repair=options["repair"],
                )
            except KonstructError as error:
                if len(chosen) == 1:
                    raise
                failed.append(entry["slug"])
                self.stderr.write(f"{entry['slug']}: {error}")
            else:
                self._show(restored, entry["as_of"])
        _report_failed(failed, len(chosen))

    def _recovered(self, moment: datetime, options: dict[str, Any]) -> None:
        tenants = list(Tenant.objects.provisioned().order_by("slug"))
        entries = [] if options["without_journal"] else entries_from(moment)
        self._confirm([tenant.slug for tenant in tenants], moment.isoformat(), options)
        for tenant in tenants:
            close(tenant)
        deleted = deleted_tenants()
        failed = []
        for tenant in tenants:
            if str(tenant.pk) in deleted:
                if not options["undelete"]:
                    self.stdout.write(
                        f"{tenant.slug} stays closed, for it was deleted: run delete_tenant again,"
                        " or this command with --undelete"
                    )
                    continue
                journal.append(tenant.pk, journal.RESTORED)
            try:
                self._show(settle(tenant, entries, repair=options["repair"]), moment.isoformat())
            except KonstructError as error:
                failed.append(tenant.slug)
                self.stderr.write(f"{tenant.slug}: {error}")
        _report_failed(failed, len(tenants))

    def _chosen(self, manifest: Manifest, options: dict[str, Any]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = manifest["tenants"]
        if options["tenant"]:
            found = [entry for entry in found if entry["slug"] == options["tenant"]]
            if not found:
                names = ", ".join(entry["slug"] for entry in manifest["tenants"][:10])
                raise UsageError(f"the backup has no {options['tenant']!r}, but {names}")
        if options["undelete"]:
            return found
        deleted = deleted_tenants()
        gone = [entry["slug"] for entry in found if entry["id"] in deleted]
        if gone and options["tenant"]:
            raise UsageError(f"{gone[0]} was deleted after the backup was made: pass --undelete")
        for slug in gone:
            self.stdout.write(f"{slug}: left out, for it was deleted (--undelete)")
        return [entry for entry in found if entry["slug"] not in gone]

    def _confirm(self, slugs: Sequence[str], moment: str, options: dict[str, Any]) -> None:
        if options["yes"]:
            return
        listed = ", ".join(slugs[:5]) + (f" and {len(slugs) - 5} more" if slugs[5:] else "")
        require_confirmation(
            f"{listed}: what came after {moment} is lost. Type {slugs[0]} to confirm: ",
            slugs[0],
            "not restored",
        )

    def _show(self, restored: Restored, moment: str) -> None:
        self.stdout.write(
            f"{restored.tenant.slug} is as of {moment}, and {restored.tenant.state}:"
            f" {restored.erasures} erasures repeated, {restored.parked} jobs given up for a person"
            f" to look at, {restored.report.counts['to be embedded']} messages"
        )


def _moment(text: str) -> datetime:
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise UsageError(
            f"--recovered-to: {text!r} is no time with a time zone, such as 2026-11-24T13:00:00Z"
        )
    return moment


def _report_failed(failed: Sequence[str], of: int) -> None:
    if failed:
        raise CommandError(
            f"{len(failed)} of {of} tenants are not restored: {', '.join(failed[:10])}",
            returncode=SOME_BEHIND,
        )
