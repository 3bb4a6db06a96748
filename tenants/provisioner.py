"""Sets up the tenants that operators register in the admin, whose process may not make a schema."""

import logging
from datetime import timedelta

from django.db.models import F, Q
from django.db.models.functions import Now

from tenants.context import public_scope
from tenants.migrating import migrate_schema
from tenants.models import Tenant

logger = logging.getLogger(__name__)

# A tenant that could not be set up is tried again after this: what was wrong may have been mended.
TRY_AGAIN_AFTER = timedelta(minutes=1)


def provision_registered() -> int:
    """Make and migrate the schema of each tenant that waits for it; how many serve now.

    A process with the owner's role does this. Two that do it at once wait for each other's schema.
    """
    provisioned = 0
    rested = Q(provisioning_failed_at__isnull=True) | Q(
        provisioning_failed_at__lt=Now() - TRY_AGAIN_AFTER
    )
    with public_scope():
        waiting = Tenant.objects.filter(rested, state=Tenant.State.PROVISIONING)
        for tenant in waiting.order_by(F("provisioning_failed_at").asc(nulls_first=True)):
            outcome = migrate_schema(tenant.schema_name)
            if outcome.error:
                logger.error("tenant %s could not be set up: %s", tenant.slug, outcome.error)
            else:
                provisioned += 1
    return provisioned
