"""Being the application for a while, in a process of the owner's."""

from collections.abc import Iterator
from contextlib import contextmanager

import dj_database_url
from django.conf import settings
from django.db import connections
from django_tenants.utils import get_tenant_database_alias

from memory.context.checkpoints.connections import close_pool


@contextmanager
def as_application() -> Iterator[None]:
    """Do the block on a connection of konstruct_app's, to the database that we are connected to."""
    alias = get_tenant_database_alias()
    ours = connections[alias]
    wanted = dj_database_url.parse(settings.APPLICATION_DATABASE_URL)
    theirs = ours.copy()
    theirs.settings_dict.update(
        {name: wanted.get(name, {}) for name in ("USER", "PASSWORD", "HOST", "PORT", "OPTIONS")}
    )
    connections[alias] = theirs
    try:
        yield
    finally:
        close_pool()
        connections[alias] = ours
        theirs.close()
