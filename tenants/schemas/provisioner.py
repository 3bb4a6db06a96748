"""What operators ask for in the admin, whose process may neither make a schema nor migrate one."""

import logging
from datetime import timedelta

from django.db.models import F, Q
from django.db.models.functions import Now

from tenants.context import public_scope
from tenants.exceptions import InvalidTenant
from tenants.models import Tenant
from tenants.schemas.migrating import migrate_schema
from tenants.schemas.migration_state import fits

logger = logging.getLogger(__name__)

# A tenant that could not be set up is tried again after this: what was wrong may have been mended.
TRY_AGAIN_AFTER = timedelta(minutes=1)


def provision_registered() -> int:
    """Make and migrate the schema of each tenant that waits for it; how many serve now.

    A process with the owner's role does this. It passes over a tenant that another process is
    setting up, `create_tenant` for example.
    """
    rested = (
        Q(provisioning_failed_at=None)
        | Q(provisioning_failed_at__lt=Now() - TRY_AGAIN_AFTER)
        | Q(migration_asked_at__isnull=False)
    )
    provisioned = 0
    with public_scope():
        waiting = Tenant.objects.filter(rested, state=Tenant.State.PROVISIONING)
        oldest_failure_last = F("provisioning_failed_at").asc(nulls_first=True)
        for pk in list(waiting.order_by(oldest_failure_last).values_list("pk", flat=True)):
            # Asked anew: the one before took seconds.
            tenant = waiting.filter(pk=pk).first()
            if tenant is None:
                continue
            outcome = migrate_schema(tenant.schema_name, wait_seconds=0)
            if not outcome.error:
                provisioned += 1
            elif not outcome.busy:
                logger.error("tenant %s could not be set up: %s", tenant.slug, outcome.error)
    return provisioned


def ask_to_migrate(tenant: Tenant) -> None:
    """Let the owner's worker set the tenant up, or migrate it, at its next look.

    Raises:
        InvalidTenant: it is up to date.
    """
    if tenant.state != Tenant.State.PROVISIONING and fits(tenant.migrated_to):
        raise InvalidTenant(f"tenant {tenant.slug!r} is up to date")
    Tenant.objects.filter(id=tenant.id).update(migration_asked_at=Now())


def migrate_asked() -> int:
    """Migrate each tenant for which an operator has asked; how many are up to date now.

    A process with the owner's role does this.
    """
    migrated = 0
    with public_scope():
        asked = Tenant.objects.provisioned().filter(migration_asked_at__isnull=False)
        for schema_name in list(asked.values_list("schema_name", flat=True)):
            outcome = migrate_schema(schema_name, wait_seconds=0)
            if not outcome.error:
                migrated += 1
            elif not outcome.busy:
                logger.error("schema %s could not be migrated: %s", schema_name, outcome.error)
    return migrated
