"""manage.py test: refused."""

from tenants.management.refused_command import RefusedCommand


class Command(RefusedCommand):
    """Names the command to run instead."""

    remedy = "run make test, or pytest with the files that you want"
