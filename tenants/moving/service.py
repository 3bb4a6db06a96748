"""Moves a tenant to another server. After an interruption `settle` completes or undoes the move.

1. A schema is made on the other server and filled from a snapshot, all in one transaction there.
   The tenant is served meanwhile.
2. The tenant is held: `Tenant.moving_to` names the other server. Running work may end.
3. Its tables are locked, and rows that changed since are copied and compared. If they differ,
   nothing is changed, and the tenant is served where it was.
4. The other server's transaction is committed.
5. The old schema is renamed, so that a process with an old entry of the tenant gets an error.
6. One statement on the main server sets `Tenant.server`.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final, cast

from django.conf import settings
from django.db import Error, connections, transaction  # noqa: TID251 (several servers are meant)

from tenants.audit.operator_log import record_command, state_of_tenant
from tenants.context import public_scope, server_scope, tenant_scope
from tenants.exceptions import (
    InvalidTenant,
    KonstructError,
    SchemaBusy,
    SchemaOutdated,
    UnknownTenant,
)
from tenants.locking import refuse_pooled_owner, schema_lock
from tenants.models import Job, Tenant
from tenants.moving.rows import count_of, run, session_on
from tenants.moving.transfer import (
    TAKE_JOBS,
    UNCHANGED,
    MoveProgress,
    Transfer,
    set_tenant,
    tables_in_tenant,
)
from tenants.postgresql.base import DatabaseWrapper
from tenants.postgresql.exceptions import ServerDown
from tenants.schemas.migration_state import schema_exists
from tenants.schemas.old_copies import drop_old_copies, old_copies
from tenants.schemas.recording import get_recording
from tenants.servers import MAIN, clear_server_cache, require_server, servers

logger = logging.getLogger(__name__)

# How long to wait for another process that migrates or moves the tenant.
WAIT_SECONDS: Final = 10.0
# How long to wait for the locks of a lost session of this process, until Postgres ends it.
LOST_SECONDS: Final = 2.0


class MoveInterrupted(KonstructError):
    """A server, or the connection to it, was lost during a move. The message names the state."""


@dataclass(frozen=True)
class Estimate:
    """The size of a tenant."""

    tables: int
    rows: int
    bytes: int


@dataclass(frozen=True)
class Moved:
    """The result of a move."""

    rows: int
    changed_rows: int
    """Rows that were copied, or removed, in the pause."""
    copy_seconds: float
    held_for: float
    """Seconds in which the tenant was not served."""


def estimate(tenant: Tenant, to: str) -> Estimate:
    """Check that a tenant can be moved to a server, and return its size. It changes nothing.

    Raises:
        InvalidTenant: the tenant cannot be moved to this server.
        ServerDown: one of the two servers is down.
        SchemaOutdated: it, or the other server, lacks migrations.
    """
    _require_movable(tenant, to)
    with session_on(tenant.server) as source, source.transaction():
        tables = tables_in_tenant(source, tenant)
        (size,) = run(
            source,
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
            " WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p')",
            tenant.schema_name,
        )
        rows = sum(count_of(source, table) for table in tables)
        return Estimate(len(tables), rows, size[0])


def move_tenant(
    tenant: Tenant, to: str, *, patience: float = 10.0, watch: MoveProgress | None = None
) -> Moved | None:
    """Move a tenant to another server. Needs the owner's role.

    Args:
        tenant: the tenant.
        to: the name of the server.
        patience: how many seconds running jobs may take while the tenant is held. Longer jobs are
            cancelled and repeated.
        watch: receives the progress.

    Returns:
        The result, or None if this completed an interrupted move to the same server.

    Raises:
        InvalidTenant: the tenant cannot be moved to this server.
        ServerDown: one of the two servers is down.
        SchemaOutdated: it, or the other server, lacks migrations.
        UnknownTenant: it was deleted.
        SchemaBusy: another process migrates, deletes or moves it.
        CopyDiffers: the copy differs from the original.
        MoveInterrupted: a server was lost meanwhile.
    """
    move: Transfer | None = None
    try:
        with _locked_on_all_servers(tenant, to):
            if tenant.moving_to:
                settle(tenant)
                if tenant.server == to:
                    return None
            _require_movable(tenant, to)
            drop_old_copies()
            _refuse_existing_schema(tenant, to)
            move = Transfer(tenant, to, patience, watch or MoveProgress())
            move.copy()
            _switch(tenant)
    except BaseException as error:
        if move is None:
            raise
        is_settled = _settle_interrupted(tenant)
        if not (is_settled and tenant.server == to and isinstance(error, Error)):
            if isinstance(error, Error):
                raise MoveInterrupted(
                    f"{error}. {_state_after_interruption(tenant, to, is_settled)}"
                ) from error
            raise
    held_for = time.monotonic() - move.held_at
    _wake(tenant)
    return Moved(move.rows, move.changed, move.copy_seconds, held_for)


def _settle_interrupted(tenant: Tenant) -> bool:
    """Settle a move of this process. Return False if that fails; the owner's worker repeats it."""
    for wrapper in connections.all(initialized_only=True):
        cast(DatabaseWrapper, wrapper).close_if_broken()
    with suppress(Error, KonstructError), public_scope():
        tenant.refresh_from_db()
        # New locks: the earlier ones were lost with the session.
        with _locked_on_all_servers(tenant, wait_seconds=LOST_SECONDS):
            settle(tenant)
            return True
    return False


def _state_after_interruption(tenant: Tenant, to: str, is_settled: bool) -> str:
    if is_settled:
        return f"{UNCHANGED}: tenant {tenant.slug!r} is served from {tenant.server}; move it again"
    return (
        f"Tenant {tenant.slug!r} may be held: the owner worker ends the move when all servers"
        f" answer; so does move_tenant {tenant.slug} --to {to}"
    )


def settle(tenant: Tenant) -> None:
    """Undo an interrupted move, or complete it if the old schema is renamed already.

    The caller holds the locks of the schema.
    """
    with public_scope():
        tenant.refresh_from_db()
        if not tenant.moving_to:
            return
        if _has_schema(tenant, tenant.server):
            _drop_copy_begun(tenant)
            Tenant.objects.filter(id=tenant.id).update(moving_to="")
            tenant.refresh_from_db()
        else:
            _switch(tenant)
        _wake(tenant)


def settle_moves() -> int:
    """Settle interrupted moves, and drop old copies that are due. Needs the owner's role.

    Running moves are skipped.

    Returns:
        The number of moves and copies.
    """
    if len(servers()) == 1:
        return 0
    settled = 0
    with public_scope():
        for tenant in list(Tenant.objects.exclude(moving_to="")):
            try:
                with _locked_on_all_servers(tenant, wait_seconds=0):
                    settle(tenant)
                    settled += 1
            except SchemaBusy:
                continue  # it is running
            except KonstructError as error:
                logger.warning("the move of tenant %s, cut off, waits: %s", tenant.slug, error)
    return settled + drop_old_copies()


@contextmanager
def _locked_on_all_servers(
    tenant: Tenant, *to: str, wait_seconds: float = WAIT_SECONDS
) -> Iterator[None]:
    """Lock the tenant's schema on all servers that may have it.

    Raises:
        InvalidTenant: there is no such server.
        UnknownTenant: the tenant was deleted.
        SchemaBusy: another process migrates, deletes or moves it.
    """
    for name in to:
        require_server(name)
    where = {tenant.server, *to} | ({tenant.moving_to} - {""})
    with ExitStack() as locks:
        for server in sorted(where):
            try:
                locks.enter_context(server_scope(server))
                refuse_pooled_owner()
                locks.enter_context(schema_lock(tenant.schema_name, wait_seconds=wait_seconds))
            except ServerDown:
                # A move has the lock on the tenant's own server too.
                if server != tenant.moving_to:
                    raise
        locks.enter_context(public_scope())
        was = tenant.server, tenant.moving_to
        try:
            tenant.refresh_from_db()
        except Tenant.DoesNotExist:
            raise UnknownTenant(f"tenant {tenant.slug!r} was deleted in the meantime") from None
        if (tenant.server, tenant.moving_to) != was:
            raise InvalidTenant(
                f"tenant {tenant.slug!r} was moved in the meantime, and is on {tenant.server}"
            )
        yield


def _require_movable(tenant: Tenant, to: str) -> None:
    require_server(to)
    if tenant.server == to:
        raise InvalidTenant(f"tenant {tenant.slug!r} is on {to} already")
    if to in settings.TENANT_DATABASES_CLOSED:
        raise InvalidTenant(f"the server {to!r} takes no new tenants (TENANT_DATABASES_CLOSED)")
    if tenant.migrated_to != get_recording().state:
        raise SchemaOutdated(
            f"tenant {tenant.slug!r} does not have all migrations of this version: run `manage.py"
            f" migrate --schema {tenant.slug}`, then move it"
        )
    applied = "SELECT app, name FROM public.django_migrations"
    with session_on(MAIN) as main, session_on(to) as there:
        if lacking := set(run(main, applied)) - set(run(there, applied)):
            raise SchemaOutdated(
                f"the public schema of {to} lacks {len(lacking)} migrations: run `manage.py migrate"
                " --shared`, then move the tenant"
            )


def _drop_copy_begun(tenant: Tenant) -> None:
    """Drop the copy of an interrupted move."""
    try:
        with session_on(tenant.moving_to) as there, there.transaction():
            run(there, f"DROP SCHEMA IF EXISTS {tenant.schema_name} CASCADE")
            set_tenant(there, tenant)
            run(there, TAKE_JOBS, tenant.id)
    except ServerDown as error:
        # The tenant is served again at once; the server may be down.
        logger.warning(
            "a copy of tenant %s, schema %s, may be on %s: drop it before the tenant is moved"
            " there (%s)",
            *(tenant.slug, tenant.schema_name, tenant.moving_to, error),
        )


def _refuse_existing_schema(tenant: Tenant, to: str) -> None:
    if _has_schema(tenant, to):
        raise InvalidTenant(
            f"a schema {tenant.schema_name} exists on {to} already: check its content, rename or"
            " drop it, then move the tenant"
        )


def _has_schema(tenant: Tenant, server: str) -> bool:
    with server_scope(server):
        return schema_exists(tenant.schema_name)


def _switch(tenant: Tenant) -> None:
    """Set the tenant's server to the one that it was moved to, and log it."""
    with public_scope():
        tenant.refresh_from_db()
        if not _has_schema(tenant, tenant.moving_to):
            copies = [f"{copy.schema_name} on {copy.server}" for copy in old_copies(tenant.id)]
            raise KonstructError(
                f"tenant {tenant.slug!r} has no schema {tenant.schema_name}, neither on"
                f" {tenant.server} nor on {tenant.moving_to}: restore it from a backup"
                + (f", or rename its old copy to that name ({', '.join(copies)})" if copies else "")
            )
        before = state_of_tenant(tenant)
        with transaction.atomic(using=MAIN):
            Tenant.objects.filter(id=tenant.id).update(server=tenant.moving_to, moving_to="")
            tenant.refresh_from_db()
            after = state_of_tenant(tenant)
            record_command("move_tenant", "edit", tenant, before=before, after=after)
    clear_server_cache()


def _wake(tenant: Tenant) -> None:
    """Let workers claim the due jobs, which they postponed while the tenant was held."""
    with suppress(ServerDown), tenant_scope(tenant.id):
        Job.objects.wake()
