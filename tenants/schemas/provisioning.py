"""Functions that create, migrate, suspend and delete tenants."""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django_redis import get_redis_connection
from redis.exceptions import RedisError

from tenants import journal, naming, outages, postgres_tools, redis_keys
from tenants.context import public_scope, server_scope, tenant_connection, tenant_scope
from tenants.exceptions import InvalidTenant, ProvisioningFailed, SchemaBusy
from tenants.models import Domain, Job, Tenant
from tenants.schemas.migrating import fits, migrate_schema, schema_exists
from tenants.servers import MAIN, require_server, servers

logger = logging.getLogger(__name__)

# A tenant that operators delete can be restored for this time.
GRACE = timedelta(days=7)
# The owner's worker has begun the grace period of this request.
_IS_IN_GRACE = Q(delete_at__isnull=False, delete_at__gte=F("deletion_asked_at") + GRACE)
# After this time the setup of a tenant is retried.
RETRY_DELAY = timedelta(minutes=1)
DROP_LOCK_TIMEOUT = "30s"
REWRITE_SECONDS = 30.0

# A function that logs a change of a tenant, called in the transaction of the change.
RecordChange = Callable[[Tenant], object]


def _no_record(tenant: Tenant) -> None:
    """Log nothing, for tests and benchmarks."""


def create_tenant(
    *,
    slug: str,
    name: str = "",
    domain: str = "",
    server: str = "",
    on_register: RecordChange = _no_record,
) -> Tenant:
    """Register a tenant, create and migrate its schema, and activate it. Needs the owner's role.

    If it fails or is killed, the tenant stays in state provisioning and is not served. A second
    call finishes the work. If the owner's worker has begun, the call waits for it.

    Args:
        slug: one label of a host name.
        name: the name that people read; by default the slug.
        domain: the host name; by default ``SLUG.<TENANT_DOMAIN_SUFFIX>``.
        server: the name of the database server; by default the one with the fewest bytes.
        on_register: called with a new tenant in the transaction that registers it.

    Returns:
        The active tenant.

    Raises:
        InvalidTenant: slug, name, domain or server is invalid, or taken.
        PooledOwner: the owner connects through a connection pooler.
        ProvisioningFailed: the schema could not be created or migrated.
    """
    postgres_tools.refuse_pooled_owner()
    with public_scope():
        tenant = Tenant.objects.filter(slug=slug).first()
        if tenant is None:
            tenant = Tenant(slug=slug, name=name or slug)
            if server:
                require_server(server)
                tenant.server = server
            register(tenant, [domain or default_domain(slug)], on_register)
        elif tenant.state != Tenant.State.PROVISIONING:
            raise InvalidTenant(f"tenant {slug!r} exists already")
        elif domain and not tenant.domains.filter(domain=domain).exists():
            raise InvalidTenant(f"tenant {slug!r} exists already, with another domain")
        elif server not in ("", tenant.server):
            raise InvalidTenant(f"tenant {slug!r} exists already, on the server {tenant.server}")
        outcome = migrate_schema(tenant.schema_name)
        if outcome.error:
            raise ProvisioningFailed(
                f"tenant {slug!r} is registered but does not serve: {outcome.error}."
                f" Remove the cause and run create_tenant {slug} again"
            )
        tenant.refresh_from_db()
        return tenant


def migrate_due() -> int:
    """Set up new tenants, and migrate those for which operators requested it.

    Needs the owner's role. A tenant that another process or thread migrates, such as
    `create_tenant`, is skipped.

    Returns:
        The number of tenants that are up to date now.
    """
    is_new = Q(state=Tenant.State.PROVISIONING)
    may_be_tried = Q(provisioning_failed_at=None) | Q(
        provisioning_failed_at__lt=Now() - RETRY_DELAY
    )
    migrated = 0
    with public_scope():
        due = Tenant.objects.filter((is_new & may_be_tried) | Q(migration_asked_at__isnull=False))
        # New tenants first.
        due = due.order_by(F("migrated_at").asc(nulls_first=True), "provisioning_failed_at")
        for schema_name in list(due.values_list("schema_name", flat=True)):
            outcome = migrate_schema(schema_name, wait_seconds=0)
            if not outcome.error:
                migrated += 1
            elif not outcome.busy:
                logger.error("schema %s could not be migrated: %s", schema_name, outcome.error)
    return migrated


def request_migration(tenant: Tenant) -> None:
    """Request that the owner's worker sets up or migrates a tenant.

    Raises:
        InvalidTenant: the tenant is up to date.
    """
    if tenant.state != Tenant.State.PROVISIONING and fits(tenant.migrated_to):
        raise InvalidTenant(f"tenant {tenant.slug!r} is up to date")
    Tenant.objects.filter(id=tenant.id).update(migration_asked_at=Now())


def default_domain(slug: str) -> str:
    """Return the default host name of a tenant."""
    return f"{slug}.{settings.TENANT_DOMAIN_SUFFIX}"


def suspend_tenant(tenant: Tenant) -> None:
    """Stop serving an active tenant. Its data stays.

    Raises:
        InvalidTenant: it is not active.
    """
    _change_state(tenant, Tenant.State.ACTIVE, Tenant.State.SUSPENDED)


def resume_tenant(tenant: Tenant) -> None:
    """Serve a suspended tenant again.

    Raises:
        InvalidTenant: it is not suspended.
    """
    _change_state(tenant, Tenant.State.SUSPENDED, Tenant.State.ACTIVE)
    wake_jobs(tenant.id)


def wake_jobs(tenant_id: UUID) -> None:
    """Let workers claim the due jobs of a tenant now; within the hour if its server is down."""
    with suppress(outages.ServerDown), tenant_scope(tenant_id):
        Job.objects.wake()


def delete_tenant(tenant: Tenant, *, on_delete: RecordChange = _no_record) -> None:
    """Delete a tenant with its schemas, cache keys and jobs. Needs the owner's role.

    It can be repeated if it fails. If the process is killed, the owner's worker completes it, and
    it cannot be cancelled: the journal may already have the tenant as deleted.

    Args:
        tenant: the tenant.
        on_delete: called with the tenant in the transaction that removes its row.

    Raises:
        SchemaBusy: another process makes, migrates or moves the schema.
        InvalidTenant: it was moved to another server, or deleted, meanwhile.
        JournalUnavailable: the journal of erasures cannot be written.
    """
    with server_scope(tenant.server), postgres_tools.schema_lock(tenant.schema_name):
        tenants = Tenant.objects.filter(id=tenant.id)
        if (request := tenants.values("deletion_asked_at", "delete_at").first()) is None:
            raise InvalidTenant(f"tenant {tenant.slug!r} was deleted in the meantime")
        if tenants.exclude(server=tenant.server, moving_to="").exists():
            raise InvalidTenant(
                f"tenant {tenant.slug!r} was moved in the meantime, or its move was cut off: run"
                f" move_tenant {tenant.slug} if it is not served, then delete it"
            )
        due = {"deletion_asked_at": Now() - GRACE, "delete_at": Now()}
        tenants.update(state=Tenant.State.SUSPENDED, **due)
        # Before the rows: if the cache is down, nothing has been deleted.
        clear_tenant_cache(tenant)
        journal.append(tenant.id, journal.DELETION_BEGUN)
        try:
            _delete_rows(tenant, on_delete)
        except BaseException:
            if schema_exists(tenant.schema_name):
                tenants.update(**request)
                journal.append(tenant.id, journal.DELETION_FAILED)
            raise
        # Running requests may have written keys.
        clear_tenant_cache(tenant)
    drop_left_overs(tenant.id)


def _delete_rows(tenant: Tenant, on_delete: RecordChange) -> None:
    connection = tenant_connection()
    # The main server commits last, because the tenant's row names the schemas to delete.
    with transaction.atomic(using=MAIN):
        with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{DROP_LOCK_TIMEOUT}'")
            schema = connection.ops.quote_name(tenant.schema_name)
            with tenant_scope(tenant.id):
                # Before the tables: a worker locks its job's row before it writes.
                Job.objects.all().delete()
            cursor.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            with tenant_scope(tenant.id):
                Job.objects.all().delete()  # enqueued by running requests
            # Required, and before the commits: without it a backup could bring the tenant back.
            journal.append(tenant.id, journal.TENANT)
        on_delete(tenant)
        Tenant.objects.filter(id=tenant.id).delete()


def drop_left_overs(tenant_id: UUID) -> int:
    """Drop the tenant's schemas on servers that are not its own. Needs the owner's role.

    Servers that are down, and servers of a running move, are left out.

    Returns:
        The number of schemas.
    """
    schema, dropped = naming.schema_name_of(tenant_id), 0
    for server in servers() if len(servers()) > 1 else ():
        with suppress(outages.ServerDown, SchemaBusy), server_scope(server):
            if not schema_exists(schema):
                continue
            # A move holds this lock on both of its servers.
            with postgres_tools.schema_lock(schema, wait_seconds=0):
                is_here = Q(server=server) | Q(moving_to=server)
                with public_scope():
                    if Tenant.objects.filter(is_here, id=tenant_id).exists():
                        continue
                drop_left_over(tenant_id, server)
                dropped += 1
    return dropped


def drop_left_over(tenant_id: UUID, server: str) -> None:
    """Drop the tenant's schema, and its jobs, on a server. The caller holds the schema's lock."""
    schema = naming.schema_name_of(tenant_id)
    with postgres_tools.session_on(server) as session, session.transaction():
        postgres_tools.end_killed_restores(session, schema)
        postgres_tools.run(session, f"SET LOCAL lock_timeout = '{DROP_LOCK_TIMEOUT}'")
        postgres_tools.run(session, f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        postgres_tools.set_tenant(session, tenant_id)
        postgres_tools.run(
            session, "DELETE FROM public.tenants_job WHERE tenant_id = %s", tenant_id
        )


def request_deletion(tenant: Tenant) -> None:
    """Suspend a tenant, and have the owner's worker delete it after GRACE.

    Raises:
        InvalidTenant: it is not set up yet, is being moved or restored, or its deletion was
            requested already.
    """
    with public_scope():
        deletable = Tenant.objects.provisioned().filter(
            deletion_asked_at__isnull=True, moving_to=""
        )
        deletable = deletable.exclude(state=Tenant.State.RESTORING)
        is_requested = deletable.filter(id=tenant.id).update(
            deletion_asked_at=Now(), state_before=F("state"), state=Tenant.State.SUSPENDED
        )
        if not is_requested:
            raise InvalidTenant(
                f"tenant {tenant.slug!r} is not set up, is being moved or restored, or is to be"
                " deleted already"
            )
        tenant.refresh_from_db()


def restore_tenant(tenant: Tenant) -> None:
    """Cancel the deletion of a tenant, which returns to its state before.

    Raises:
        InvalidTenant: its deletion was not requested, or has begun.
    """
    with public_scope():
        has_time = ~_IS_IN_GRACE | Q(delete_at__gt=Now())
        requested = Tenant.objects.filter(has_time, id=tenant.id, deletion_asked_at__isnull=False)
        if not requested.update(deletion_asked_at=None, state=F("state_before"), state_before=""):
            raise InvalidTenant(f"tenant {tenant.slug!r} is not to be deleted, or it has begun")
        tenant.refresh_from_db()
    if tenant.state == Tenant.State.ACTIVE:
        wake_jobs(tenant.id)


def delete_due(on_delete: RecordChange = _no_record) -> int:
    """Delete the tenants after their grace period. Needs the owner's role.

    The period begins when this process finds the request: the application cannot shorten it.

    Args:
        on_delete: called with each tenant in the transaction that removes its row.

    Returns:
        The number of tenants that are deleted now.
    """
    with public_scope():
        requested = Tenant.objects.filter(deletion_asked_at__isnull=False)
        Tenant.objects.filter(deletion_asked_at=None, delete_at__isnull=False).update(
            delete_at=None
        )
        requested.filter(~_IS_IN_GRACE).update(delete_at=Now() + GRACE)
        due = list(requested.filter(_IS_IN_GRACE, delete_at__lte=Now()))
    deleted = 0
    for tenant in due:
        try:
            delete_tenant(tenant, on_delete=on_delete)
        except (InvalidTenant, SchemaBusy, outages.ServerDown, journal.JournalUnavailable) as error:
            logger.warning("tenant %s is not deleted yet: %s", tenant.slug, error)
            continue
        rewrite_cache_file()
        deleted += 1
    return deleted


def clear_tenant_cache(tenant: Tenant) -> int:
    """Remove all cache keys of a tenant, and return their number."""
    client = get_redis_connection("default")
    keys = list(client.scan_iter(match=redis_keys.all_keys_pattern(tenant.id), count=1000))
    for start in range(0, len(keys), 1000):
        client.unlink(*keys[start : start + 1000])
    return len(keys)


def rewrite_cache_file() -> str:
    """Have the cache rewrite its file, which holds removed values until then.

    The file is append-only, or a snapshot.

    Returns:
        `rewritten`; `none` if it has no file; `refused` if the cache forbids it; `unfinished`
        after REWRITE_SECONDS.
    """
    client = get_redis_connection("default")
    try:
        state = client.info("persistence")
        if state.get("aof_enabled"):
            running, ask = "aof_rewrite", client.bgrewriteaof
        elif state.get("rdb_last_save_time") and state.get("rdb_saves", 1):
            running, ask = "rdb_bgsave", client.bgsave
        else:
            return "none"
        ask()
        deadline = time.monotonic() + REWRITE_SECONDS
        while time.monotonic() < deadline:
            state = client.info("persistence")
            if not state.get(f"{running}_in_progress") and not state.get(f"{running}_scheduled"):
                ended = state.get("aof_last_bgrewrite_status", state.get("rdb_last_bgsave_status"))
                return "rewritten" if ended == "ok" else "unfinished"
            time.sleep(0.05)
    except RedisError as error:
        logger.warning("The cache's file is not written anew: %s", error)
        return "refused"
    return "unfinished"


def register(tenant: Tenant, domains: Sequence[str], on_register: RecordChange) -> None:
    """Store a new tenant with its host names, in one transaction.

    Args:
        tenant: the tenant.
        domains: the host names; the first one is the primary one.
        on_register: called with the tenant in the transaction.

    Raises:
        InvalidTenant: a name is invalid, or taken.
    """
    try:
        # Postgres checks the rest, without a query for each constraint.
        tenant.clean_fields(exclude=["schema_name", "server"])
        with transaction.atomic():
            tenant.save(force_insert=True)
            for position, domain in enumerate(domains):
                host = Domain(domain=domain, tenant=tenant, is_primary=position == 0)
                host.clean_fields(exclude=["tenant"])
                host.clean()
                host.validate_unique()
                host.save()
            on_register(tenant)
    except ValidationError as error:
        problems = (f"{field}: {' '.join(texts)}" for field, texts in error.message_dict.items())
        raise InvalidTenant("; ".join(problems)) from error
    except IntegrityError as error:
        raise InvalidTenant(
            f"tenant {tenant.slug!r} or domain {', '.join(domains)!r} exists already"
        ) from error


def _change_state(tenant: Tenant, before: str, after: str) -> None:
    with public_scope():
        tenants = Tenant.objects.filter(id=tenant.id, deletion_asked_at__isnull=True)
        if not tenants.filter(state=before).update(state=after):
            deleted = "" if tenants.exists() else ", or is to be deleted: restore it first"
            raise InvalidTenant(f"tenant {tenant.slug!r} is not {before}{deleted}")
        tenant.refresh_from_db()
