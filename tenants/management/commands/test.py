"""manage.py test: refused."""

from tenants.management.refused import RefusedCommand


class Command(RefusedCommand):
    """Names the command to run instead."""

    remedy = "run make test, or pytest with the files that you want"
