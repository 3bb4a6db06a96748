"""manage.py quota: show and set the quotas of a tenant."""

from argparse import ArgumentParser
from decimal import Decimal
from typing import Any

from konstruct.orchestrator import usage
from tenants import transaction
from tenants.audit.operator_log import record_command, state_of_tenant
from tenants.context import public_scope, tenant_scope
from tenants.limits.quotas import (
    UNLIMITED,
    Limit,
    Quota,
    limits_of,
    parse_limit,
    set_limits,
)
from tenants.management.base import KonstructCommand, UsageError, tenant_of
from tenants.models import Tenant


class Command(KonstructCommand):
    """Shows and sets the quotas of a tenant."""

    help = "Shows a tenant's quotas and their usage, or sets one of them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="The tenant.")
        parser.add_argument("--set", choices=[*Quota], dest="quota", help="The quota to set.")
        parser.add_argument("--soft", help="Soft limit, or none. Above it a warning is shown.")
        parser.add_argument("--hard", help="Hard limit, or none. Above it requests are refused.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["tenant"])
        if options["quota"]:
            if options["soft"] is None and options["hard"] is None:
                raise UsageError("--set: give --soft, --hard or both")
            tenant = self._set(tenant, Quota(options["quota"]), options["soft"], options["hard"])
        elif options["soft"] or options["hard"]:
            raise UsageError("--soft and --hard: name the quota by --set")
        limits = limits_of(tenant.quotas)
        with tenant_scope(tenant.id):
            used = usage.usage_of(tenant, Quota)
        for quota in Quota:
            limit, found = limits.get(quota, UNLIMITED), used[quota]
            self.stdout.write(
                f"{quota.value:20} used {_shown(found)}, soft {_shown(limit.soft)}, hard"
                f" {_shown(limit.hard)}"
            )

    def _set(self, tenant: Tenant, quota: Quota, soft: str | None, hard: str | None) -> Tenant:
        before = limits_of(tenant.quotas).get(quota, UNLIMITED)
        limit = Limit(
            before.soft if soft is None else parse_limit(quota, soft),
            before.hard if hard is None else parse_limit(quota, hard),
        )
        with public_scope(), transaction.atomic():
            changed = set_limits(tenant.pk, {quota: limit})
            record_command(
                *(self.name, "edit", changed),
                before=state_of_tenant(tenant),
                after=state_of_tenant(changed),
            )
        return changed


def _shown(value: Any) -> str:
    return "none" if value is None else f"{Decimal(value):f}"
