"""manage.py delete_tenant: delete a tenant and all its data, after a confirmation."""

from typing import Any

from tenants.audit.operator_log import record_command, state_of_tenant
from tenants.management.base import KonstructCommand, require_confirmation, tenant_of
from tenants.schemas import provisioning


class Command(KonstructCommand):
    """Deletes a tenant: schema, cache keys, registration."""

    help = "Deletes a tenant with all its data. Only a backup can restore it."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("slug", help="The tenant to delete.")
        parser.add_argument("--yes", action="store_true", help="Do not ask for confirmation.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["slug"], provisioned=False)
        if not options["yes"]:
            question = f"Delete tenant {tenant.slug} ({tenant.name}) and all its data?"
            require_confirmation(
                f"{question} Type the slug to confirm: ", tenant.slug, "not deleted"
            )
        provisioning.delete_tenant(
            tenant,
            on_delete=lambda gone: record_command(
                self.name, "delete", gone, before=state_of_tenant(gone)
            ),
        )
        file = provisioning.rewrite_cache_file()
        if file not in ("rewritten", "none"):
            self.stderr.write(f"the file of the cache still holds text of the tenant: {file}")
        self.stdout.write(f"deleted tenant {tenant.slug}")
