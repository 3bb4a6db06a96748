"""The check at the start of web and worker processes: end if tenants are not isolated."""

import logging
import os
import sys
from typing import Any, NoReturn

from django.db import InterfaceError, OperationalError
from django.db.backends.signals import connection_created

from tenants.checks.connections import unsafe_pooler_reason, unsafe_role_reason
from tenants.context import current_server, server_scope
from tenants.outages import outage_reason
from tenants.postgresql.base import DatabaseWrapper
from tenants.roles import APP_ROLE
from tenants.servers import MAIN, servers

logger = logging.getLogger(__name__)

# gunicorn ends at this status instead of restarting the worker for ever.
CANNOT_BOOT = 3

# Servers that were down at the start of this process.
_unchecked_servers: set[str] = set()


def refuse_unsafe_role() -> None:
    """End a web or worker process that could mix tenants on any server, with one line as reason.

    A server that is down is checked at the first connection to it.
    """
    for server in servers():
        try:
            with server_scope(server):
                _refuse_if_unsafe()
        except (OperationalError, InterfaceError) as error:
            logger.warning(
                "The database server %r is not in use yet: %s", server, outage_reason(error)
            )
            _unchecked_servers.add(server)
            connection_created.connect(_check_on_connect)


def _check_on_connect(connection: DatabaseWrapper, **_: Any) -> None:
    """Check a server that was down at the start, before its first use."""
    if connection.alias in _unchecked_servers:
        try:
            with server_scope(connection.alias):
                _refuse_if_unsafe()
        except SystemExit:  # would end only this thread
            os._exit(CANNOT_BOOT)
        _unchecked_servers.discard(connection.alias)


def _refuse_if_unsafe() -> None:
    setting = (
        "DATABASE_URL" if current_server() == MAIN else f"TENANT_DATABASES ({current_server()})"
    )
    # First: a pooler in statement mode refuses the transaction of the other check.
    if reason := unsafe_pooler_reason():
        _refuse_to_serve(
            f"behind the connection pooler of {setting} {reason}. Let it pool by transaction"
            " (PgBouncer: pool_mode = transaction), or name Postgres itself"
        )
    if reason := unsafe_role_reason():
        _refuse_to_serve(
            f"the database role {reason}, so row-level security does not bind it. Connect as"
            f" {APP_ROLE} ({setting})"
        )


def _refuse_to_serve(why: str) -> NoReturn:
    sys.stderr.write(f"konstruct: refusing to serve: {why}.\n")
    raise SystemExit(CANNOT_BOOT)
