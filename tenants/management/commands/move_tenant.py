"""manage.py move_tenant: move a tenant to another database server while others are served."""

from typing import Any, Final

from django.core.management.base import CommandParser, OutputWrapper
from django.template.defaultfilters import filesizeformat

from tenants.management.base import KonstructCommand, UsageError, tenant_of
from tenants.management.migration_report import Progress
from tenants.moving.service import Estimate, estimate, move_tenant
from tenants.moving.transfer import MoveProgress
from tenants.schemas.old_copies import COPY_LIFETIME

# Bytes and rows per second, measured by benchmarks/fleet/moving.py on two cores.
COPIED_BYTES_PER_SECOND: Final = 4_000_000
COMPARED_ROWS_PER_SECOND: Final = 1_500_000


class Command(KonstructCommand):
    """Moves a tenant. Running it again completes an interrupted move."""

    help = (
        "Moves a tenant to another database server. It is copied while it is served. "
        "Then it is paused while changed rows are copied and all rows compared, and is "
        "served from the new server. The old copy is dropped after a day."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="The tenant to move.")
        parser.add_argument(
            "--to",
            required=True,
            metavar="SERVER",
            help="Server to move it to: default, or one of TENANT_DATABASES.",
        )
        parser.add_argument(
            "--patience",
            type=float,
            default=10,
            metavar="SECONDS",
            help=(
                "How long running jobs may continue while the tenant is paused. Longer ones are "
                "cancelled and repeated (default: %(default)s)."
            ),
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="Show the size of the tenant, and change nothing.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["patience"] < 0:
            raise UsageError("--patience must not be negative")
        tenant, to = tenant_of(options["slug"]), options["to"]
        left = tenant.server
        if not tenant.moving_to:
            found = estimate(tenant, to)
            self.stdout.write(
                f"{tenant.slug}: {found.tables} tables, {found.rows:,} rows,"
                f" {filesizeformat(found.bytes)}, from {left} to {to}: {_duration(found)}"
            )
        elif options["dry_run"]:
            self.stdout.write(
                f"{tenant.slug}: a move to {tenant.moving_to} was interrupted. It is ended first"
            )
        if options["dry_run"]:
            return
        moved = move_tenant(tenant, to, patience=options["patience"], watch=_Shown(self.stdout))
        if moved is None:
            self.stdout.write(f"{tenant.slug} is on {to}: the interrupted move is completed")
            return
        self.stdout.write(
            f"{tenant.slug} is on {to}: {moved.rows:,} rows copied and compared in"
            f" {moved.copy_seconds:.0f} s, of which"
            f" {moved.changed_rows:,} changed in the pause. It was held for"
            f" {moved.held_for:.1f} s. The copy on {left} is dropped after {COPY_LIFETIME.days} day"
        )


def _duration(found: Estimate) -> str:
    """Return the estimated duration, at the speed measured by benchmarks/fleet/moving.py."""
    copied, held = (
        found.bytes / COPIED_BYTES_PER_SECOND,
        0.5 + found.rows / COMPARED_ROWS_PER_SECOND,
    )
    return (
        f"about {copied:.0f} s to copy while it is served, and about {held:.1f} s in which it is"
        " held, plus the time of running jobs"
    )


class _Shown(MoveProgress):
    """Prints the progress of a move."""

    def __init__(self, stdout: OutputWrapper) -> None:
        self._stdout = stdout
        self._bar: Progress | None = None

    def on_copy(self, rows: int, of: int) -> None:
        if self._stdout.isatty():
            self._bar = self._bar or Progress(self._stdout, of)
            self._bar.show(rows)

    def on_index_build(self, indexes: int) -> None:
        if self._bar is not None:
            self._bar.clear()
        self._stdout.write(f"rows are copied; building {indexes} indexes")

    def on_hold(self, seconds: float) -> None:
        self._stdout.write(f"the tenant is held from now on, for about {seconds:.1f} s")
