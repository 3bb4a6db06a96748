"""Restores tenants. A tenant is not served until erasures are repeated in it and it is verified.

1. The backup is checked. Until here nothing is changed.
2. The tenant is closed: its requests get 503, and none of its jobs is begun.
3. Its schema is put aside under another name, and that of the backup is made, in one transaction.
   If this fails, the schema is put back, and the tenant is as it was.
4. The schema is migrated, and what came after the backup is repeated (`settle`).
5. The schema of before is dropped, and the tenant is served.

Killed at any point, the tenant is as it was, or closed. The same command, run again, completes it.
If that fails, the tenant is served only if its schema of before is still aside: any other may be
one in which erasures are not repeated yet.
"""

import json
import logging
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.contrib.sessions.models import Session as LoginSession
from django.core.exceptions import ValidationError
from django.db import DatabaseError, IntegrityError
from django.db.models import F
from django.db.models.functions import Now

from konstruct.backups.dumping import PUBLIC_TABLES, check_tenant
from konstruct.backups.files import PUBLIC, Manifest, check_file, dump_of, jobs_of
from konstruct.backups.postgres import insert_rows, name_of_restore, restore_schema
from konstruct.backups.replaying import note_open_requests, replay
from konstruct.channels.delivery.queue import DELIVERIES
from konstruct.channels.inbox import ARRIVALS
from konstruct.channels.notifications.looking import SENDING
from konstruct.consistency import Report, verify
from konstruct.orchestrator.models import HeldFor
from konstruct.orchestrator.replies.queue import REPLIES
from tenants import journal, transaction
from tenants.audit.operator_log import record_command, state_of_tenant
from tenants.audit.tombstones import write_tombstones
from tenants.context import (
    execute,
    fetch_value,
    public_scope,
    required_tenant_id,
    server_scope,
    tenant_scope,
)
from tenants.exceptions import InvalidTenant, KonstructError, SchemaOutdated, WorkspaceTaken
from tenants.jobs.kind import NOT_BEGUN
from tenants.locking import refuse_a_pooled_owner, schema_lock
from tenants.models import Domain, Job, Tenant
from tenants.moving.rows import run, session_on
from tenants.moving.transfer import SETTLE_SECONDS, enter
from tenants.naming import replaced_schema_of
from tenants.postgresql.exceptions import ServerDown
from tenants.roles import APP_ROLE
from tenants.schemas.migrating import migrate_schema
from tenants.schemas.migration_state import known_migrations, schema_exists
from tenants.schemas.provisioning import default_domain, forget_cache
from tenants.servers import MAIN, note_server, require_server
from tenants.serving import claim_workspace

logger = logging.getLogger(__name__)

# Jobs that people outside see. They may have been done after the backup.
SEEN_BY_PEOPLE: Final = (REPLIES, DELIVERIES, ARRIVALS, SENDING)
RESTORED: Final = "restored"
PARKED: Final = (
    "It waited when the backup was made that was restored, and may have been done since. Look"
    " before you retry it."
)
# Comment on a schema that was served until it was put aside.
ORIGINAL: Final = "served before a restore"
# How long to wait for the end of the session of a killed restore.
KILLED_MILLISECONDS: Final = 30_000
# Clocks of two servers differ by less.
CLOCK_TOLERANCE: Final = timedelta(minutes=5)


class NotClean(KonstructError):
    """A restored tenant is not as it should be, and stays closed."""


@dataclass(frozen=True)
class Restored:
    """The result for one tenant."""

    tenant: Tenant
    erasures: int
    """Erasures that were repeated."""
    parked: int
    """Jobs that were given up for a person to look at."""
    report: Report


def entries_since(manifest: Manifest) -> list[journal.Entry]:
    """Return the lines of the journal that a backup does not have.

    Raises:
        JournalUnavailable, JournalBroken: the journal cannot be believed.
    """
    return journal.read(manifest["journal"])


def entries_from(moment: datetime) -> list[journal.Entry]:
    """Return the lines of the journal since a moment, to which Postgres was recovered."""
    since = moment - CLOCK_TOLERANCE
    return [each for each in journal.read() if datetime.fromisoformat(each["at"]) >= since]


def deleted_tenants() -> set[str]:
    """Return the ids of tenants that were deleted by the journal, and not restored afterwards."""
    deleted: set[str] = set()
    for entry in journal.read() if journal.is_kept() else ():
        if entry["kind"] == journal.TENANT:
            deleted.add(entry["tenant"])
        elif entry["kind"] == journal.RESTORED:
            deleted.discard(entry["tenant"])
    return deleted


def restore(
    path: Path,
    manifest: Manifest,
    entry: dict[str, Any],
    entries: Iterable[journal.Entry],
    *,
    slug: str = "",
    server: str = "",
    repair: bool = False,
) -> Restored:
    """Restore one tenant of a backup, in the place of what it is now, or as a new one.

    Args:
        path: the folder of the backup.
        manifest: its manifest.
        entry: the tenant, of the manifest.
        entries: lines of the journal since the backup.
        slug: another short name for a tenant that this deployment does not have.
        server: the server for such a tenant.
        repair: repair what `verify_memory` finds.

    Raises:
        BackupInvalid, SchemaOutdated, InvalidTenant: nothing was changed.
        ToolFailed: the schema could not be made. Nothing was changed.
        NotClean: the tenant is restored, and stays closed.
    """
    _refuse_unknown_migrations(entry)
    check_tenant(path, manifest, entry)
    refuse_a_pooled_owner()
    tenant, is_new = _registered(entry, slug=slug, server=server)
    with server_scope(tenant.server), schema_lock(tenant.schema_name):
        before = state_of_tenant(tenant)
        was_served = close(tenant)
        _end_killed_restores(tenant)
        # Else its schema may be one that an earlier call has made and not settled.
        has_original = was_served or _is_original(replaced_schema_of(tenant.pk))
        time.sleep(SETTLE_SECONDS)  # requests that run end, as before a move
        try:
            entries = [*entries, *_note_what_waits(tenant)]
            _put_aside(tenant, is_original=was_served)
            _load(tenant, path)
        except BaseException:
            _put_back(tenant, is_new=is_new, reopens=has_original)
            raise
        if not has_original:
            journal.append(tenant.pk, journal.RESTORED)
            _claim_workspaces(tenant, entry["claims"])
        with public_scope():
            record_command("restore", "restore", tenant, before=before, backup=path.name)
        return settle(tenant, entries, repair=repair)


def close(tenant: Tenant) -> bool:
    """Stop serving a tenant. It keeps the state to which it returns.

    Returns:
        Whether it was not closed already, so that its schema is one that was served.
    """
    with public_scope():
        staying = Tenant.objects.filter(pk=tenant.pk).exclude(state=Tenant.State.RESTORING)
        if tenant.moving_to:
            raise InvalidTenant(f"tenant {tenant.slug!r} is being moved: end that first")
        if tenant.deletion_asked_at is None:
            staying.update(state_before=tenant.state)
        was_served = bool(staying.update(state=Tenant.State.RESTORING))
        tenant.refresh_from_db()
        return was_served


def settle(tenant: Tenant, entries: Iterable[journal.Entry], *, repair: bool = False) -> Restored:
    """Repeat what came after a backup in a closed tenant, verify it, and serve it.

    Raises:
        NotClean: it is not as it should be, and stays closed.
    """
    own = [each for each in entries if each["tenant"] == str(tenant.pk)]
    migrated = migrate_schema(tenant.schema_name, {"restored": True})
    if migrated.error:
        raise NotClean(
            f"tenant {tenant.slug!r} cannot be migrated, and stays closed: {migrated.error}"
        )
    forget_cache(tenant)
    with server_scope(tenant.server), tenant_scope(tenant.pk):
        parked = _park_jobs()
        LoginSession.objects.all().delete()
        erasures = replay(own)
    report = verify(tenant.pk, tenant.slug, repair=repair)
    if report.findings:
        kinds = ", ".join(sorted({finding.kind for finding in report.findings}))
        raise NotClean(
            f"tenant {tenant.slug!r} is restored and stays closed, because verify_memory finds"
            f" {len(report.findings)} × {kinds}. Look at them with verify_memory --tenant"
            f" {tenant.slug}, then run restore again with --repair"
        )
    with server_scope(tenant.server):
        execute(f"DROP SCHEMA IF EXISTS {replaced_schema_of(tenant.pk)} CASCADE")
    _serve(tenant)
    return Restored(tenant, erasures, parked, report)


def restore_public(path: Path, manifest: Manifest) -> None:
    """Restore the operators, their permissions and their log into a deployment that has none.

    Raises:
        BackupInvalid: the backup does not have them.
        InvalidTenant: there are operators or tenants already. Nothing was changed.
    """
    check_file(path, manifest, PUBLIC)
    rows: dict[str, list[dict[str, Any]]] = {table: [] for table in PUBLIC_TABLES}
    with (path / PUBLIC).open() as file:
        for line in file:
            each = json.loads(line)
            rows[each["table"]].append(each["row"])
    with session_on(MAIN) as session, session.transaction():
        for table in ("auth_user", "tenants_tenant"):
            if run(session, f"SELECT 1 FROM public.{table} LIMIT 1"):  # noqa: S608
                raise InvalidTenant(
                    "there are operators or tenants here: --public restores into an empty"
                    " deployment, after manage.py migrate"
                )
        for table in reversed(PUBLIC_TABLES):
            run(session, f"DELETE FROM public.{table}")  # noqa: S608
        for table in PUBLIC_TABLES:
            insert_rows(session, f"public.{table}", rows[table])
            if "id" in (rows[table] or [{}])[0]:
                run(
                    session,
                    f"SELECT setval(pg_get_serial_sequence('public.{table}', 'id'),"  # noqa: S608
                    f" (SELECT max(id) FROM public.{table}))",
                )


def _refuse_unknown_migrations(entry: dict[str, Any]) -> None:
    ours = {name.partition(".")[0] for name in known_migrations()}
    known = known_migrations()
    unknown = {
        name for name in entry["migrations"] if name.partition(".")[0] in ours and name not in known
    }
    if unknown:
        raise SchemaOutdated(
            f"the backup of {entry['slug']!r} has migrations that this version does not know"
            f" ({sorted(unknown)[0]}, …): restore it with the version that made it, then upgrade"
        )


def _registered(entry: dict[str, Any], *, slug: str, server: str) -> tuple[Tenant, bool]:
    """Return the tenant of a backup; register it, closed, if this deployment does not have it."""
    with public_scope():
        tenant = Tenant.objects.filter(pk=entry["id"]).first()
        if tenant is not None:
            note_server(tenant.pk, tenant.server)
            if slug not in ("", tenant.slug) or server not in ("", tenant.server):
                raise InvalidTenant(
                    f"this tenant is here as {tenant.slug!r}, on {tenant.server}: a second copy of"
                    " a tenant needs another deployment; --as and --server are for that"
                )
            return tenant, False
        if server:
            require_server(server)
        state = entry["state"]
        tenant = Tenant(
            pk=UUID(entry["id"]),
            slug=slug or entry["slug"],
            name=entry["name"],
            quotas=entry["quotas"],
            state=Tenant.State.RESTORING,
            state_before=state if state == Tenant.State.SUSPENDED else Tenant.State.ACTIVE,
            **({"server": server} if server else {}),
        )
        domains = [] if slug else entry["domains"]
        try:
            tenant.clean_fields(exclude=["schema_name", "server"])
            with transaction.atomic():
                tenant.save(force_insert=True)
                tenant.refresh_from_db()
                for place, name in enumerate(domains or [default_domain(tenant.slug)]):
                    Domain.objects.create(domain=name, tenant=tenant, is_primary=place == 0)
                record_command("restore", "create", tenant, after=state_of_tenant(tenant))
        except ValidationError as error:
            raise InvalidTenant("; ".join(error.messages)) from error
        except IntegrityError as error:
            raise InvalidTenant(
                f"the name {tenant.slug!r} or a domain of it is another tenant's here: --as SLUG"
                " gives it another name"
            ) from error
        note_server(tenant.pk, tenant.server)
        return tenant, True


def _note_what_waits(tenant: Tenant) -> list[journal.Entry]:
    """Write into the journal what the owner's worker has not yet; return these lines.

    The schema that is put aside has the requests, and the jobs are replaced.
    """
    if not journal.is_kept():
        return []
    here = journal.position()
    with tenant_scope(tenant.pk):
        write_tombstones()
        try:
            if schema_exists(tenant.schema_name):
                note_open_requests()
        except DatabaseError as error:  # a schema that is broken is a reason to restore it
            logger.warning("Open erasures of tenant %s are not noted: %s", tenant.slug, error)
    return journal.read(here)


def _is_original(schema_name: str) -> bool:
    """Return whether a schema that was put aside was served before."""
    comment = fetch_value(
        "SELECT obj_description(to_regnamespace(%s), 'pg_namespace')", [schema_name]
    )
    return bool(comment == ORIGINAL)


def _put_aside(tenant: Tenant, *, is_original: bool) -> None:
    """Give the schema of before another name, which the application may not enter.

    What a killed restore has made is dropped: the schema of before is aside already.
    """
    aside = replaced_schema_of(tenant.pk)
    if schema_exists(aside):
        execute(f"DROP SCHEMA IF EXISTS {tenant.schema_name} CASCADE")
    elif schema_exists(tenant.schema_name):
        with transaction.atomic():
            execute(f"ALTER SCHEMA {tenant.schema_name} RENAME TO {aside}")
            execute(f"REVOKE USAGE ON SCHEMA {aside} FROM {APP_ROLE}")
            if is_original:
                execute(f"COMMENT ON SCHEMA {aside} IS '{ORIGINAL}'")


def _end_killed_restores(tenant: Tenant) -> None:
    """End the sessions that killed restores of this tenant left: they would go on."""
    execute(
        "SELECT pg_terminate_backend(pid, %s) FROM pg_stat_activity"
        " WHERE application_name = %s AND datname = current_database()",
        [KILLED_MILLISECONDS, name_of_restore(tenant.schema_name)],
    )


def _put_back(tenant: Tenant, *, is_new: bool, reopens: bool) -> None:
    """Undo everything: the tenant is as it was."""
    aside = replaced_schema_of(tenant.pk)
    with server_scope(tenant.server), transaction.atomic():
        if is_new or schema_exists(aside):
            execute(f"DROP SCHEMA IF EXISTS {tenant.schema_name} CASCADE")
        if schema_exists(aside):
            execute(f"ALTER SCHEMA {aside} RENAME TO {tenant.schema_name}")
            execute(f"GRANT USAGE ON SCHEMA {tenant.schema_name} TO {APP_ROLE}")
            execute(f"COMMENT ON SCHEMA {tenant.schema_name} IS NULL")
    with public_scope():
        if is_new:
            Tenant.objects.filter(pk=tenant.pk).delete()
        elif reopens:
            _reopen(tenant)
        else:
            logger.warning(
                "Tenant %s stays closed, for an earlier restore of it was not ended", tenant.slug
            )


def _load(tenant: Tenant, path: Path) -> None:
    """Make the schema of the backup, and put its jobs and its claims in the place of today's."""
    with session_on(tenant.server) as session:
        restore_schema(session, tenant.schema_name, path / dump_of(tenant.pk))
        with (path / jobs_of(tenant.pk)).open() as file:
            jobs = [json.loads(line) for line in file]
        with session.transaction():
            enter(session, tenant)
            table = f"public.{Job._meta.db_table}"
            run(session, f"DELETE FROM {table} WHERE tenant_id = %s", tenant.pk)  # noqa: S608
            insert_rows(session, table, jobs)


def _park_jobs() -> int:
    """Begin no job of the current tenant that people outside see; a person may retry it.

    What waits for a person goes on waiting. Return how many jobs are given up.
    """
    jobs = Job.objects.filter(tenant_id=required_tenant_id())
    jobs.filter(begun_at__isnull=False).update(**NOT_BEGUN)
    seen = jobs.filter(kind__in=[kind.name for kind in SEEN_BY_PEOPLE], failed_at__isnull=True)
    return seen.exclude(held_for=HeldFor.PERSON).update(
        failed_at=Now(), held_for="", error_code=RESTORED, last_error=PARKED
    )


def _claim_workspaces(tenant: Tenant, claims: Iterable[Sequence[str]]) -> None:
    """Claim the workspaces of a new tenant that no other has claimed meanwhile."""
    with tenant_scope(tenant.pk):
        for channel, workspace in claims:
            try:
                claim_workspace(channel, workspace)
            except WorkspaceTaken as error:
                logger.warning("%s", error)


def _serve(tenant: Tenant) -> None:
    _reopen(tenant)
    # If the server is down, the jobs are claimed within the hour.
    with suppress(ServerDown), tenant_scope(tenant.pk):
        Job.objects.wake()


def _reopen(tenant: Tenant) -> None:
    """Let a closed tenant have the state that it had."""
    with public_scope():
        closed = Tenant.objects.filter(pk=tenant.pk, state=Tenant.State.RESTORING)
        closed.filter(deletion_asked_at__isnull=False).update(state=Tenant.State.SUSPENDED)
        closed.filter(state_before="").update(state=Tenant.State.ACTIVE)
        closed.update(state=F("state_before"), state_before="")
        tenant.refresh_from_db()
