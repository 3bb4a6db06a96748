"""The last look before a web or worker process serves: it ends where tenants could meet."""

import logging
import os
import sys
from typing import Any, NoReturn

from django.db import InterfaceError, OperationalError
from django.db.backends.signals import connection_created

from tenants.checks.connections import why_pooler_is_unsafe, why_role_is_unsafe
from tenants.context import current_server, server_scope
from tenants.outages import outage_reason
from tenants.postgresql.base import DatabaseWrapper
from tenants.roles import APP_ROLE
from tenants.servers import MAIN, replicas, servers

logger = logging.getLogger(__name__)

# gunicorn ends at this status, instead of starting the worker again and again.
CANNOT_BOOT = 3

# Servers that were down when this process began.
_unseen: set[str] = set()


def refuse_unsafe_role() -> None:
    """End a web or worker process that could mix tenants on any server, with one clear line.

    A server that is down is looked at as soon as a connection is made to it.
    """
    for server in [*servers(), *replicas()]:
        try:
            with server_scope(server):
                _refuse_if_unsafe()
        except (OperationalError, InterfaceError) as error:
            logger.warning(
                "The database server %r is not in use yet: %s", server, outage_reason(error)
            )
            _unseen.add(server)
            connection_created.connect(_look_at_last)


def _look_at_last(connection: DatabaseWrapper, **_: Any) -> None:
    """Look at a server that was down when this process began, before anybody uses it."""
    if connection.alias in _unseen:
        try:
            with server_scope(connection.alias):
                _refuse_if_unsafe()
        except SystemExit:  # in a thread of many, which it would end alone
            os._exit(CANNOT_BOOT)
        _unseen.discard(connection.alias)


def _refuse_if_unsafe() -> None:
    setting = (
        "DATABASE_URL" if current_server() == MAIN else f"TENANT_DATABASES ({current_server()})"
    )
    if reason := why_role_is_unsafe():
        _refuse_to_serve(
            f"the database role {reason}, so row-level security does not bind it. Connect as"
            f" {APP_ROLE} ({setting})"
        )
    if reason := why_pooler_is_unsafe():
        _refuse_to_serve(
            f"behind the connection pooler of {setting} {reason}. Let it pool by transaction"
            " (PgBouncer: pool_mode = transaction), or name Postgres itself"
        )


def _refuse_to_serve(why: str) -> NoReturn:
    sys.stderr.write(f"konstruct: refusing to serve: {why}.\n")
    raise SystemExit(CANNOT_BOOT)
