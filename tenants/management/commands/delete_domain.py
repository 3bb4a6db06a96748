"""manage.py delete_domain: refused."""

from tenants.management.refused_command import RefusedCommand


class Command(RefusedCommand):
    """Names the command to run instead."""

    remedy = "remove the domain on the tenant's page of the operators' admin"
