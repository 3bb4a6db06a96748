"""manage.py collectstatic_schemas: refused."""

from tenants.management.refused_command import RefusedCommand


class Command(RefusedCommand):
    """Names the command to run instead."""

    remedy = (
        "files of the pages are the same for all tenants and need no command; a proxy that "
        "serves them takes manage.py collectstatic"
    )
