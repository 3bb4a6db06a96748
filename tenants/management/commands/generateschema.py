"""manage.py generateschema: refused."""

from tenants.management.refused_command import RefusedCommand


class Command(RefusedCommand):
    """Names the command to run instead."""

    remedy = "run manage.py spectacular, which writes the OpenAPI description"
