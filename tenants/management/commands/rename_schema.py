"""manage.py rename_schema: refused."""

from tenants.management.refused_command import RefusedCommand


class Command(RefusedCommand):
    """Names the command to run instead."""

    remedy = (
        "a schema is named after the tenant's id, which manage.py list_tenants shows; the "
        "name of a tenant is changed in the operators' admin"
    )
