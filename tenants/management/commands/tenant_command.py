"""manage.py tenant_command: refused."""

from tenants.management.refused_command import RefusedCommand


class Command(RefusedCommand):
    """Names the command to run instead."""

    remedy = (
        "run a command of Konstruct with --tenant SLUG, or enter the tenant by "
        "tenants.context.tenant_scope in manage.py shell"
    )
