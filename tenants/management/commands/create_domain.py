"""manage.py create_domain: refused."""

from tenants.management.refused_command import RefusedCommand


class Command(RefusedCommand):
    """Names the command to run instead."""

    remedy = (
        "add a domain on the tenant's page of the operators' admin, or with manage.py "
        "create_tenant SLUG --domain NAME"
    )
