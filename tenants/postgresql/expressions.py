"""SQL expressions with the current tenant."""

from django.db.models import Func, UUIDField

# An unset setting is NULL, a RESET one is "": both mean that there is no tenant.
CURRENT_TENANT = "NULLIF(current_setting('app.current_tenant', true), '')::uuid"
# The sub-select makes Postgres evaluate it once per statement and not once per row.
IS_CURRENT_TENANT = f"tenant_id = (SELECT {CURRENT_TENANT})"


class CurrentTenant(Func):
    """The tenant of the Postgres session; NULL outside of tenants."""

    template = CURRENT_TENANT
    arity = 0
    output_field = UUIDField()
