"""manage.py move_tenant: move a tenant to another database server while others are served."""

from typing import Any, Final

from django.template.defaultfilters import filesizeformat

from tenants.management.base import KonstructCommand, tenant_of
from tenants.moving import bytes_to_move, move_tenant

# Measured by benchmarks/fleet/moving.py on two cores.
SECONDS_OF_EMPTY_TENANT: Final = 10
BYTES_PER_SECOND: Final = 4_000_000


class Command(KonstructCommand):
    """Moves a tenant. Running it again ends an interrupted move first."""

    help = (
        "Moves a tenant to another database server. The tenant is not served while its rows are "
        "copied and compared; --dry-run estimates how long."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("slug", help="The tenant to move.")
        parser.add_argument(
            "--to",
            required=True,
            metavar="SERVER",
            help="Server to move it to: default, or one of TENANT_DATABASES.",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="Show the size of the tenant, and change nothing.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        tenant, to = tenant_of(options["slug"]), options["to"]
        if not tenant.moving_to:
            size = bytes_to_move(tenant, to)
            seconds = SECONDS_OF_EMPTY_TENANT + size / BYTES_PER_SECOND
            self.stdout.write(
                f"{tenant.slug}: {filesizeformat(size)}, from {tenant.server} to {to}: it is held"
                f" for about {seconds:.0f} s, plus the time of running jobs"
            )
        if options["dry_run"]:
            return
        done = "the interrupted move is completed"
        if moved := move_tenant(tenant, to):
            done = (
                f"{moved.rows:,} rows copied and compared. It was held for {moved.held_for:.1f} s"
            )
        self.stdout.write(f"{tenant.slug} is on {to}: {done}")
