"""manage.py suspend_tenant: stop serving a tenant, or serve it again."""

from typing import Any

from django.core.management.base import CommandParser

from tenants.management.base import KonstructCommand, change_tenant, tenant_of
from tenants.schemas import provisioning


class Command(KonstructCommand):
    """Suspends or resumes a tenant, as the operators' admin does."""

    help = (
        "Suspends a tenant: its requests are refused, its jobs wait, and its data stays. "
        "--resume serves it again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="The tenant to suspend.")
        parser.add_argument("--resume", action="store_true", help="Serve a suspended tenant.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["slug"])
        if options["resume"]:
            change_tenant(self, tenant, provisioning.resume_tenant, "resume")
            self.stdout.write(f"resumed tenant {tenant.slug}: it is served again")
        else:
            change_tenant(self, tenant, provisioning.suspend_tenant, "suspend")
            self.stdout.write(f"suspended tenant {tenant.slug}: --resume serves it again")
