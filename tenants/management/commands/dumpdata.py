"""manage.py dumpdata: refused."""

from tenants.management.refused_command import RefusedCommand


class Command(RefusedCommand):
    """Names the command to run instead."""

    remedy = "run manage.py export_memory for a tenant, or pg_dump for all (docs/operations.md)"
