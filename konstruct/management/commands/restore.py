"""manage.py restore: restore tenants from a backup, or settle them after a recovery of Postgres."""

from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError
from django.utils.dateparse import parse_datetime

from konstruct.backups import dumping, restoring
from tenants import journal, postgres_tools
from tenants.exceptions import KonstructError, detail_of
from tenants.management import base
from tenants.models import Tenant


class Command(base.KonstructCommand):
    """Restores tenants. Running it again completes an interrupted restore."""

    help = (
        "Restores tenants of a backup, or settles those of a recovered Postgres. Each is served "
        "again when erasures since then are repeated. Exit status 4 if some tenants could not be "
        "restored."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "path", type=Path, nargs="?", metavar="BACKUP", help="The folder of the backup."
        )
        group = parser.add_mutually_exclusive_group(required=True)
        group.add_argument("--tenant", metavar="SLUG", help="Slug of the tenant in the backup.")
        group.add_argument("--all", action="store_true", help="All tenants of the backup.")
        group.add_argument(
            "--recovered-to",
            metavar="TIME",
            help="Use no backup: Postgres was recovered to this time (ISO 8601 with time zone).",
        )
        parser.add_argument(
            "--server", default="", metavar="NAME", help="Database server for new tenants."
        )
        parser.add_argument(
            "--undelete",
            action="store_true",
            help="Include tenants that were deleted after the backup.",
        )
        parser.add_argument(
            "--again",
            action="store_true",
            help="Include tenants that an earlier run has already restored to this state.",
        )
        parser.add_argument(
            "--without-journal",
            action="store_true",
            help="Repeat no erasures: the journal of erasures does not exist or is lost.",
        )
        parser.add_argument(
            "--repair", action="store_true", help="Repair the findings of verify_memory."
        )
        parser.add_argument("--yes", action="store_true", help="Do not ask for confirmation.")

    def handle(self, *args: Any, **options: Any) -> None:
        if bool(options["path"]) == bool(options["recovered_to"]):
            raise base.UsageError("give a backup, or --recovered-to")
        if not journal.is_enabled() and not options["without_journal"]:
            raise base.UsageError(
                "ERASURE_JOURNAL is not set: people who were erased since the backup would come "
                "back. Set it, or pass --without-journal and erase them again yourself"
            )
        with postgres_tools.restore_lock() as is_alone:
            if not is_alone:
                raise CommandError(
                    "another restore is running: wait for its end, and run this one again"
                )
            if options["recovered_to"]:
                self._settle_recovered(_parse_moment(options["recovered_to"]), options)
            else:
                self._restore(options["path"], options)

    def _restore(self, path: Path, options: dict[str, Any]) -> None:
        manifest = dumping.verify_backup(path) if options["all"] else dumping.read_manifest(path)
        entries_to_restore = self._select_entries(manifest, options)
        entries = [] if options["without_journal"] else journal.read(manifest["journal"])
        if not (options["without_journal"] or manifest["keeps_journal"]):
            self.stderr.write(
                "There was no journal of erasures when this backup was made: data that was erased "
                "before the journal began comes back"
            )
        existing = Tenant.objects.filter(pk__in=[entry["id"] for entry in entries_to_restore])
        if slugs := sorted(existing.values_list("slug", flat=True)):
            self._confirm(slugs, manifest["began_at"], options)
        for tenant in existing.filter(
            pk__in=restoring.deleted_tenants()
        ):  # its deletion was killed
            restoring.undelete(tenant)
        calls = {
            entry["slug"]: partial(
                restoring.restore,
                path,
                manifest,
                entry,
                [line for line in entries if line["tenant"] == entry["id"]],
                server=options["server"],
                repair=options["repair"],
            )
            for entry in entries_to_restore
        }
        moments = {entry["slug"]: entry["as_of"] for entry in entries_to_restore}
        if options["tenant"]:
            ((slug, call),) = calls.items()
            self._show(call(), moments[slug])
            return
        self._restore_each(calls, moments)

    def _settle_recovered(self, moment: datetime, options: dict[str, Any]) -> None:
        entries = [] if options["without_journal"] else restoring.read_entries_since(moment)
        tenants = {
            str(tenant.pk): tenant for tenant in Tenant.objects.provisioned().order_by("slug")
        }
        names = {pk: tenant.slug for pk, tenant in tenants.items()}
        for pk in self._skip_settled(names, options, recovered_to=moment.isoformat()):
            del tenants[pk]
        self._confirm([tenant.slug for tenant in tenants.values()], moment.isoformat(), options)
        for tenant in tenants.values():
            restoring.close(tenant)
        calls = {}
        deleted = restoring.deleted_tenants()
        for pk, tenant in tenants.items():
            if pk in deleted:
                if not options["undelete"]:
                    self.stdout.write(
                        f"{tenant.slug} stays closed, because it was deleted: run delete_tenant"
                        " again, or this command with --undelete"
                    )
                    continue
                restoring.undelete(tenant)
            calls[tenant.slug] = partial(
                restoring.settle,
                tenant,
                [line for line in entries if line["tenant"] == pk],
                repair=options["repair"],
                recovered_to=moment.isoformat(),
            )
        self._restore_each(calls, dict.fromkeys(calls, moment.isoformat()))

    def _restore_each(
        self, calls: Mapping[str, Callable[[], restoring.Restored]], moments: dict[str, str]
    ) -> None:
        failed = []
        for number, (slug, call) in enumerate(calls.items(), 1):
            prefix = f"[{number}/{len(calls)}] "
            try:
                self._show(call(), moments[slug], prefix)
            except (KonstructError, DatabaseError) as error:
                failed.append(slug)
                self.stderr.write(f"{prefix}{slug}: {' '.join(detail_of(error).split())}")
        if failed:
            raise CommandError(
                f"{len(failed)} of {len(calls)} tenants are not restored: {', '.join(failed[:10])}",
                returncode=base.SOME_TENANTS_FAILED,
            )

    def _select_entries(
        self, manifest: dumping.Manifest, options: dict[str, Any]
    ) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = manifest["tenants"]
        if options["tenant"]:
            entries = [entry for entry in entries if entry["slug"] == options["tenant"]]
            if not entries:
                others = ", ".join(entry["slug"] for entry in manifest["tenants"][:10])
                raise base.UsageError(
                    f"the backup has no tenant {options['tenant']!r}. It has {others}"
                )
        if options["all"]:
            names = {entry["id"]: entry["slug"] for entry in entries}
            settled = self._skip_settled(names, options, backup=dumping.backup_name(manifest))
            entries = [entry for entry in entries if entry["id"] not in settled]
        if options["undelete"]:
            return entries
        deleted = restoring.deleted_tenants()
        deleted_slugs = [entry["slug"] for entry in entries if entry["id"] in deleted]
        if deleted_slugs and options["tenant"]:
            raise base.UsageError(
                f"{deleted_slugs[0]} was deleted after the backup was made: pass --undelete"
            )
        for slug in deleted_slugs:
            self.stdout.write(f"{slug}: left out, because it was deleted (--undelete)")
        return [entry for entry in entries if entry["slug"] not in deleted_slugs]

    def _skip_settled(
        self, names: dict[str, str], options: dict[str, Any], **log_detail: str
    ) -> set[str]:
        """Return the ids of tenants that an earlier run has restored and opened, and print them."""
        settled = {} if options["again"] else restoring.find_settled(**log_detail)
        skipped = sorted(names.keys() & settled.keys(), key=names.__getitem__)
        for pk in skipped:
            self.stdout.write(
                f"{names[pk]}: left out, because an earlier run restored it at"
                f" {dumping.format_moment(settled[pk].isoformat())}, and later changes would be"
                " lost (--again)"
            )
        return set(skipped)

    def _confirm(self, slugs: Sequence[str], moment: str, options: dict[str, Any]) -> None:
        if options["yes"]:
            return
        names = ", ".join(slugs[:5]) + (f" and {len(slugs) - 5} more" if slugs[5:] else "")
        base.require_confirmation(
            f"{names}: changes after {dumping.format_moment(moment)} are lost. Type {slugs[0]} to"
            " confirm: ",
            slugs[0],
            "not restored",
        )

    def _show(self, restored: restoring.Restored, moment: str, prefix: str = "") -> None:
        self.stdout.write(
            f"{prefix}{restored.tenant.slug} is as of {dumping.format_moment(moment)}, and"
            f" {restored.tenant.state}: {restored.erasures} erasures repeated,"
            f" {restored.jobs_given_up}"
            f" jobs given up for a person to check, {restored.report.counts['to be embedded']}"
            " messages"
        )


def _parse_moment(text: str) -> datetime:
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise base.UsageError(
            f"--recovered-to: {text!r} is not a time with a time zone, such as 2026-11-24T13:00:00Z"
        )
    return moment
