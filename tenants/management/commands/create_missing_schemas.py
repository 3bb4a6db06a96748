"""manage.py create_missing_schemas: refused."""

from tenants.management.refused_command import RefusedCommand


class Command(RefusedCommand):
    """Names the command to run instead."""

    remedy = (
        "run manage.py create_tenant SLUG again, which finishes what was interrupted; "
        "manage.py list_tenants shows the state of each"
    )
