"""manage.py clone_tenant: refused."""

from tenants.management.refused_command import RefusedCommand


class Command(RefusedCommand):
    """Names the command to run instead."""

    remedy = (
        "run manage.py create_tenant SLUG, then manage.py export_memory and manage.py import_memory"
    )
