"""manage.py loaddata: refused."""

from tenants.management.refused_command import RefusedCommand


class Command(RefusedCommand):
    """Names the command to run instead."""

    remedy = "run manage.py import_memory or manage.py import_transcript"
