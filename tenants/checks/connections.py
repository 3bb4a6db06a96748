"""Checks of connections: their role, a pooler before them, and room to write.

A web or worker process ends at its start if it could mix tenants.
"""

import logging
import os
import sys
from contextlib import closing
from typing import Any, Final, NoReturn, cast
from uuid import uuid4

from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, OperationalError, connections
from django.db.backends.signals import connection_created

from tenants import context, transaction
from tenants.naming import APP_ROLE, SCHEMA_PATTERN
from tenants.outages import NotWritable, outage_reason
from tenants.postgresql.base import DatabaseWrapper
from tenants.servers import MAIN, cache_server, servers

logger = logging.getLogger(__name__)

# gunicorn ends at this status instead of restarting the worker for ever.
CANNOT_BOOT: Final = 3

# Servers that were down at the start of this process.
_unchecked_servers: set[str] = set()

# Ways in which the connection's role could bypass row-level security; no rows: none. A member of
# an owning role can become it. Login roles are checked too, because SET ROLE can be undone.
_UNSAFE = """
    SELECT rolname || CASE WHEN rolsuper THEN ' is a superuser' ELSE ' has BYPASSRLS' END
    FROM pg_roles
    WHERE (rolsuper OR rolbypassrls) AND rolname IN (current_user, session_user)
    UNION ALL
    SELECT session_user || ' owns, or is a member of the role that owns, tenants'' tables'
    WHERE EXISTS (
        SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p')
          AND (n.nspname ~ %s OR n.nspname = 'public' AND c.relname = 'tenants_tenant')
          AND (pg_has_role(session_user, c.relowner, 'MEMBER')
               OR pg_has_role(current_user, c.relowner, 'MEMBER'))
    )
"""


def unsafe_role_reason() -> str:
    """Return the reason why the connection's role could bypass the policies; "" if it cannot."""
    # Superusers have every role: several reasons, of which the first is returned.
    return context.fetch_value(_UNSAFE, [SCHEMA_PATTERN]) or ""


def unsafe_pooler_reason() -> str:
    """Return the reason why a pooler could mix tenants; "" if it cannot, or if there is none.

    It sets the id of a tenant that does not exist: every statement of the block must see it, in
    whichever session it runs, and the next statement must not.
    """
    connection = context.tenant_connection()
    if not connection.is_pooled:
        return ""
    nobody = uuid4()
    cache_server(nobody, connection.alias)
    try:
        with context.tenant_scope(nobody):
            with transaction.atomic():
                found = [_session_and_tenant() for _ in range(3)]
            found.append((found[0][0], _session_and_tenant()[1]))
        _, left = _session_and_tenant()
    except DatabaseError as error:
        connection.close()
        return f"transactions fail ({str(error).splitlines()[0].strip()})"
    if set(found) != {(found[0][0], str(nobody))}:
        return "the statements of a transaction come to several sessions"
    return "a tenant outlives its transaction" if left else ""


def _session_and_tenant() -> tuple[int, str]:
    found: tuple[int, str] = context.fetch_row(
        "SELECT pg_backend_pid(), coalesce(current_setting('app.current_tenant', true), '')"
    )
    return found


# Sorts more rows than fit into work_mem, so Postgres writes a temporary file of a megabyte. Like an
# INSERT this fails when the disk is full. It takes some milliseconds, needs no table, and leaves no
# file. A standby or read-only server reports transaction_read_only.
_SPILL = """
SELECT current_setting('transaction_read_only')
FROM (SELECT count(*) FROM (SELECT n FROM generate_series(1, 20000) AS n ORDER BY -n) AS sorted)
"""


def require_writable(server: str = DEFAULT_DB_ALIAS) -> None:
    """Open a new connection to a server, and have it write a temporary file.

    Raises:
        OperationalError: the server takes no connection, or refuses the login.
        NotWritable: it has no space left, or is read-only.
    """
    with closing(cast(DatabaseWrapper, connections[server].copy())) as probe:
        probe.set_autocommit(False)
        try:
            probe.set_local({"work_mem": "64kB"})
            with probe.cursor() as cursor:
                cursor.execute(_SPILL)
                is_read_only = cursor.fetchone() != ("off",)
        except DatabaseError as error:
            raise NotWritable(outage_reason(error)) from error
    if is_read_only:
        raise NotWritable("transaction_read_only is on")


def refuse_unsafe_role() -> None:
    """End a web or worker process that could mix tenants on any server, with one line as reason.

    A server that is down is checked at the first connection to it.
    """
    for server in servers():
        try:
            with context.server_scope(server):
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
            with context.server_scope(connection.alias):
                _refuse_if_unsafe()
        except SystemExit:  # would end only this thread
            os._exit(CANNOT_BOOT)
        _unchecked_servers.discard(connection.alias)


def _refuse_if_unsafe() -> None:
    setting = (
        "DATABASE_URL"
        if context.current_server() == MAIN
        else f"TENANT_DATABASES ({context.current_server()})"
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
