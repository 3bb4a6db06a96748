"""Being the application for a while, in a process of the owner's."""

from collections.abc import Iterator
from contextlib import contextmanager

import dj_database_url
from django.conf import settings
from django.db import connections

from memory.context.checkpoints.connections import close_pools
from tenants.servers import MAIN, servers


@contextmanager
def as_application() -> Iterator[None]:
    """Do the block on connections of konstruct_app's, to the databases that we are connected to."""
    ours = {server: connections[server] for server in servers()}
    urls = {MAIN: settings.APPLICATION_DATABASE_URL, **settings.TENANT_DATABASES}
    for server, connection in ours.items():
        wanted = dj_database_url.parse(urls[server])
        theirs = connection.copy()
        theirs.settings_dict.update(
            {name: wanted.get(name, {}) for name in ("USER", "PASSWORD", "HOST", "PORT", "OPTIONS")}
        )
        connections[server] = theirs
    try:
        yield
    finally:
        close_pools()
        for server, connection in ours.items():
            connections[server].close()
            connections[server] = connection
