"""manage.py create_tenant_superuser: refused."""

from tenants.management.refused_command import RefusedCommand


class Command(RefusedCommand):
    """Names the command to run instead."""

    remedy = (
        "run manage.py create_tenant_admin --tenant SLUG --username NAME, which records it in "
        "the access log"
    )
