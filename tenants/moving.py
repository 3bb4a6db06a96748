"""Moves a tenant to another server. It is not served meanwhile, and other tenants are.

1. The tenant is held: `Tenant.moving_to` names the other server. Running jobs may end.
2. The application loses its access to the schema, and the tables are locked against writes.
3. The schema and the jobs are copied, and all rows of both servers are compared.
4. One commit exchanges `server` and `moving_to`: until then nothing has changed.
5. The schema on `moving_to` is dropped, and the tenant is served from `server`.

After a kill only the last step is left, whichever server the tenant has then.
"""

import json
import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, Final, cast
from uuid import UUID

from django.db import Error, connections, transaction  # noqa: TID251 (several servers are meant)
from psycopg.errors import LockNotAvailable

from tenants import exceptions, naming, outages, postgres_tools as tools
from tenants.audit.operator_log import record_command, state_of_tenant
from tenants.context import public_scope, server_scope
from tenants.models import Tenant
from tenants.postgresql.base import DatabaseWrapper
from tenants.schemas import migrating, provisioning
from tenants.servers import MAIN, clear_server_cache, require_server, servers

logger = logging.getLogger(__name__)

# Running requests end within this time. Jobs that run for longer are aborted, and done again.
SETTLE_SECONDS: Final = 0.25
MAX_JOB_SECONDS: Final = 10.0
# How long to wait for another process that migrates or moves the tenant, and for its tables.
WAIT_SECONDS: Final = 10.0
LOCK_TIMEOUT: Final = "30s"

_JOBS: Final = "public.tenants_job"
_SIZE: Final = """
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p')
"""
# Values of an extension's types are digested in their binary form: the OID of such a type differs
# between servers, and would be part of the row.
_TABLES: Final = """
SELECT c.relname, string_agg(
    CASE WHEN t.typnamespace = 'pg_catalog'::regnamespace THEN quote_ident(a.attname)
    ELSE format('%%I.%%I(%%I)', t.typnamespace::regnamespace, p.proname, a.attname) END,
    ', ' ORDER BY a.attname)
FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type AS t ON t.oid = a.atttypid
JOIN pg_proc AS p ON p.oid = t.typsend
WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'p')
GROUP BY c.relname ORDER BY c.relname
"""
_SEQUENCES: Final = "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = %s"
# The number of rows of a table, and two sums of the first 8 bytes of their digests, in any order.
_SUMS: Final = (
    "SELECT count(*), bit_xor(digest), sum(digest) FROM (SELECT ('x' || encode(substr("
    "sha256(record_send(ROW({1}))), 1, 8), 'hex'))::bit(64)::bigint AS digest"
    " FROM {0}) AS digests"
)
_RUNNING: Final = (
    "SELECT EXISTS (SELECT FROM tenants_job WHERE begun_at > now() - interval '1 minute')"
)


class CopyDiffers(exceptions.KonstructError):
    """Source and copy of a tenant are not equal. Nothing was changed."""


class MoveInterrupted(exceptions.KonstructError):
    """A server, or the connection to it, was lost during a move."""


@dataclass(frozen=True)
class Moved:
    """The result of a move."""

    rows: int
    held_for: float
    """Seconds in which the tenant was not served."""


def bytes_to_move(tenant: Tenant, to: str) -> int:
    """Check that a tenant can be moved to a server, and return its size. It changes nothing.

    Raises:
        InvalidTenant: the tenant cannot be moved to this server.
        ServerDown: one of the two servers is down.
        SchemaOutdated: it, or the other server, lacks migrations.
    """
    require_server(to)
    if tenant.server == to:
        raise exceptions.InvalidTenant(f"tenant {tenant.slug!r} is on {to} already")
    if tenant.migrated_to != migrating.current_state():
        raise exceptions.SchemaOutdated(
            f"tenant {tenant.slug!r} does not have all migrations of this version: run `manage.py"
            f" migrate --schema {tenant.slug}`, then move it"
        )
    applied = "SELECT app, name FROM public.django_migrations"
    with (
        tools.session_on(MAIN) as main,
        tools.session_on(to) as there,
        tools.session_on(tenant.server) as here,
    ):
        if lacking := set(tools.run(main, applied)) - set(tools.run(there, applied)):
            raise exceptions.SchemaOutdated(
                f"the public schema of {to} lacks {len(lacking)} migrations: run `manage.py migrate"
                " --shared`, then move the tenant"
            )
        return int(tools.run(here, _SIZE, tenant.schema_name)[0][0])


def move_tenant(tenant: Tenant, to: str) -> Moved | None:
    """Move a tenant to another server. Needs the owner's role.

    Args:
        tenant: the tenant.
        to: the name of the server.

    Returns:
        The result, or None if this completed an interrupted move to the same server.

    Raises:
        InvalidTenant, ServerDown, SchemaOutdated: as `bytes_to_move` raises them.
        UnknownTenant: it was deleted.
        SchemaBusy: another process migrates, deletes or moves it.
        CopyDiffers: the copy differs from the original.
        MoveInterrupted: a server was lost meanwhile.
    """
    require_server(to)
    try:
        with _locked(tenant, to):
            if tenant.moving_to:
                _settle(tenant)
                if tenant.server == to:
                    return None
            bytes_to_move(tenant, to)
            began = time.monotonic()
            rows = _move(tenant, to)
            _settle(tenant)
            return Moved(rows, time.monotonic() - began)
    except BaseException as error:
        with suppress(Error):
            settle_moves(tenant.pk)
        if not isinstance(error, Error) or isinstance(error, exceptions.KonstructError):
            raise
        raise MoveInterrupted(
            f"{error}; tenant {tenant.slug!r} is on the server that list_tenants names. If it is"
            " held, the owner worker, or move_tenant again, serves it"
        ) from error


def settle_moves(tenant_id: UUID | None = None) -> int:
    """End interrupted moves of all tenants, or of one. Needs the owner's role.

    Running moves are skipped.

    Returns:
        The number of moves.
    """
    if len(servers()) == 1:
        return 0
    for wrapper in connections.all(initialized_only=True):
        cast(DatabaseWrapper, wrapper).close_if_broken()
    settled = 0
    with public_scope():
        held = Tenant.objects.exclude(moving_to="")
        for tenant in list(held.filter(id=tenant_id) if tenant_id else held):
            try:
                with _locked(tenant, wait_seconds=2 if tenant_id else 0):
                    _settle(tenant)
                    settled += 1
            except exceptions.SchemaBusy:
                continue  # it is running
            except (exceptions.KonstructError, Error) as error:
                logger.warning("the move of tenant %s, cut off, waits: %s", tenant.slug, error)
    return settled


@contextmanager
def _locked(tenant: Tenant, to: str = "", wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Lock the tenant's schema on all servers that may have it."""
    with ExitStack() as locks:
        for server in sorted({tenant.server, tenant.moving_to, to or tenant.server} - {""}):
            try:
                locks.enter_context(server_scope(server))
                locks.enter_context(
                    tools.schema_lock(tenant.schema_name, wait_seconds=wait_seconds)
                )
            except outages.ServerDown:
                # A move has the lock on the tenant's own server too.
                if server in (tenant.server, to):
                    raise
        locks.enter_context(public_scope())
        was = tenant.server, tenant.moving_to
        try:
            tenant.refresh_from_db()
        except Tenant.DoesNotExist:
            raise exceptions.UnknownTenant(
                f"tenant {tenant.slug!r} was deleted in the meantime"
            ) from None
        if (tenant.server, tenant.moving_to) != was:
            raise exceptions.InvalidTenant(
                f"tenant {tenant.slug!r} was moved in the meantime, and is on {tenant.server}"
            )
        yield


def _move(tenant: Tenant, to: str) -> int:
    """Hold the tenant, copy it, and make the other server its own. Return the number of rows."""
    schema = tenant.schema_name
    Tenant.objects.filter(id=tenant.id).update(moving_to=to)
    time.sleep(SETTLE_SECONDS)
    provisioning.drop_left_over(tenant.id, to)
    with tools.session_on(tenant.server) as source, tools.session_on(to) as target:
        tools.poll(partial(_has_no_running_job, source, tenant), seconds=MAX_JOB_SECONDS)
        tools.run(source, f"REVOKE USAGE ON SCHEMA {schema} FROM {naming.APP_ROLE}")
        with source.transaction():
            tools.set_tenant(source, tenant.id)
            _lock(source, tenant)
            jobs = list(
                tools.read_rows(source, _JOBS, f"tenant_id = {tools.literal(tenant.id)} FOR UPDATE")
            )
            rows = digests_of(source, schema)
            tools.copy_schema(source, target, tenant.id, schema)
            copied = digests_of(target, schema)
            for name, _ in sorted(rows.items() ^ copied.items(), key=itemgetter(0)):
                raise CopyDiffers(
                    f"the copy of {name} differs from the source: {rows.get(name, [0])[0]} rows"
                    f" here, {copied.get(name, [0])[0]} there. Nothing was changed"
                )
            names = ", ".join(tools.quoted(schema, name) for name in rows)
            tools.run(target, f"ANALYZE {names}")
            with target.transaction():
                tools.set_tenant(target, tenant.id)
                tools.insert_rows(target, _JOBS, map(json.loads, jobs))
            tools.run(source, "SELECT 1")  # its locks are held until now
            _switch(tenant)
    return sum(count for count, *_ in rows.values())


def _has_no_running_job(source: tools.Session, tenant: Tenant) -> bool:
    with source.transaction():
        tools.set_tenant(source, tenant.id)
        return tools.run(source, _RUNNING) == [(False,)]


def _lock(source: tools.Session, tenant: Tenant) -> None:
    """Lock all tables of the tenant against writes, until the end of the transaction."""
    tables = (
        tools.quoted(tenant.schema_name, name)
        for name, _ in tools.run(source, _TABLES, tenant.schema_name)
    )
    tools.run(source, f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
    try:
        tools.run(source, f"LOCK TABLE {', '.join(tables)} IN SHARE ROW EXCLUSIVE MODE")
    except LockNotAvailable as error:
        raise exceptions.KonstructError(
            f"tables of tenant {tenant.slug!r} are locked by another session on {tenant.server}"
            f" (pg_locks), and were not free within {LOCK_TIMEOUT}. Nothing was changed; wait for"
            " its end, or end it, and try again"
        ) from error


def digests_of(session: tools.Session, schema: str) -> dict[str, tuple[Any, ...]]:
    """Return the number and checksums of the rows of each table, and the values of sequences.

    All rows are read, including rows that a policy hides, from which a copy by pg_dump would lack.
    """
    tables = tools.run(session, _TABLES, schema)
    found = {}
    with session.transaction(force_rollback=True):
        for name, _ in tables:
            tools.run(
                session, f"ALTER TABLE {tools.quoted(schema, name)} NO FORCE ROW LEVEL SECURITY"
            )
        tools.run(session, "SET LOCAL row_security = off")
        for name, columns in tables:
            (found[name],) = tools.run(session, _SUMS.format(tools.quoted(schema, name), columns))
    return found | {name: (0, value) for name, value in tools.run(session, _SEQUENCES, schema)}


def _switch(tenant: Tenant) -> None:
    """Make the other server the tenant's own, and log it. This commit is the move."""
    with public_scope(), transaction.atomic(using=MAIN):
        tenant.refresh_from_db()
        before = state_of_tenant(tenant)
        Tenant.objects.filter(id=tenant.id).update(server=tenant.moving_to, moving_to=tenant.server)
        tenant.refresh_from_db()
        record_command(
            *("move_tenant", "edit", tenant), before=before, after=state_of_tenant(tenant)
        )


def _settle(tenant: Tenant) -> None:
    """Drop the schema on the server that `moving_to` names, and serve the tenant from its own.

    The caller holds the locks of the schema. If the tenant's own server lacks the schema, nothing
    is dropped.
    """
    with tools.session_on(tenant.server) as session:
        tools.run(session, f"GRANT USAGE ON SCHEMA {tenant.schema_name} TO {naming.APP_ROLE}")
    try:
        provisioning.drop_left_over(tenant.id, tenant.moving_to)
    except Error as error:
        # The application has no access to it. It goes with the next move, erasure or deletion.
        logger.warning(
            "a copy of tenant %s, schema %s, may be left on %s: %s",
            *(tenant.slug, tenant.schema_name, tenant.moving_to, error),
        )
    with public_scope():
        Tenant.objects.filter(id=tenant.id).update(moving_to="")
        tenant.refresh_from_db()
    clear_server_cache()
    provisioning.wake_jobs(tenant.id)  # workers have postponed them
