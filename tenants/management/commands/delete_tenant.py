"""manage.py delete_tenant: delete a tenant and all its data, after a confirmation."""

from functools import partial
from typing import Any

from django.core.management.base import CommandParser

from tenants.audit.operator_log import change_tenant, record_command, state_of_tenant
from tenants.cache_file import rewrite_cache_file
from tenants.management.base import (
    KonstructCommand,
    require_confirmation,
    tenant_of,
)
from tenants.schemas import provisioning


class Command(KonstructCommand):
    """Deletes a tenant: schema, cache keys, registration."""

    help = "Deletes a tenant with all its data. Only a backup can restore it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="The tenant to delete.")
        parser.add_argument("--yes", action="store_true", help="Do not ask for confirmation.")
        parser.add_argument(
            "--grace",
            action="store_true",
            help=(
                "Suspend it now, and have the owner's worker delete it after seven days, as the "
                "operators' admin does. Until then --restore cancels the deletion."
            ),
        )
        parser.add_argument(
            "--restore", action="store_true", help="Cancel a deletion with --grace."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["slug"], provisioned=False)
        if options["restore"]:
            change_tenant(
                tenant, provisioning.restore_tenant, partial(record_command, self.name, "restore")
            )
            self.stdout.write(f"restored tenant {tenant.slug}: it is {tenant.state}")
            return
        if not options["yes"]:
            question = f"Delete tenant {tenant.slug} ({tenant.name}) and all its data?"
            require_confirmation(
                f"{question} Type the slug to confirm: ", tenant.slug, "not deleted"
            )
        if options["grace"]:
            change_tenant(
                tenant, provisioning.request_deletion, partial(record_command, self.name, "suspend")
            )
            days = provisioning.GRACE_DAYS
            self.stdout.write(f"suspended tenant {tenant.slug}: it is deleted after {days} days")
            return
        provisioning.delete_tenant(
            tenant,
            on_delete=lambda gone: record_command(
                self.name, "delete", gone, before=state_of_tenant(gone)
            ),
        )
        file = rewrite_cache_file()
        if file not in ("rewritten", "none"):
            self.stderr.write(f"the file of the cache still holds text of the tenant: {file}")
        self.stdout.write(f"deleted tenant {tenant.slug}")
