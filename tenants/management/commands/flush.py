"""manage.py flush: refused."""

from tenants.management.refused_command import RefusedCommand


class Command(RefusedCommand):
    """Names the command to run instead."""

    remedy = "run manage.py delete_tenant SLUG, or manage.py erase_user for one person"
