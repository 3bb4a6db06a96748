"""manage.py testserver: refused."""

from tenants.management.refused_command import RefusedCommand


class Command(RefusedCommand):
    """Names the command to run instead."""

    remedy = "run manage.py demo, which makes tenants to try, or make test"
