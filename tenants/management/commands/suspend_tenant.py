"""manage.py suspend_tenant: stop serving a tenant, or serve it again."""

from functools import partial
from typing import Any

from tenants.audit.operator_log import change_tenant, record_command
from tenants.management.base import KonstructCommand, tenant_of
from tenants.schemas import provisioning


class Command(KonstructCommand):
    """Suspends or resumes a tenant, as the operators' admin does."""

    help = (
        "Suspends a tenant: its requests are refused, its jobs wait, and its data stays. "
        "--resume serves it again."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("slug", help="The tenant to suspend.")
        parser.add_argument("--resume", action="store_true", help="Serve a suspended tenant.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["slug"])
        change, action = provisioning.suspend_tenant, "suspend"
        if options["resume"]:
            change, action = provisioning.resume_tenant, "resume"
        change_tenant(tenant, change, partial(record_command, self.name, action))
        self.stdout.write(f"tenant {tenant.slug} is {tenant.state}")
