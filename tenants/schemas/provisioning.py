"""Creating, migrating, suspending and deleting tenants, for commands and for the owner's worker."""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django_redis import get_redis_connection

from tenants.context import public_scope, server_scope, tenant_connection, tenant_scope
from tenants.exceptions import InvalidTenant, ProvisioningFailed
from tenants.locking.schema_locks import refuse_a_pooled_owner, schema_lock
from tenants.models import Domain, Job, Tenant
from tenants.postgresql.exceptions import ServerDown
from tenants.redis_keys import all_keys_pattern
from tenants.schemas.migrating import migrate_schema
from tenants.schemas.migration_state import fits
from tenants.schemas.old_copies import drop_old_copies
from tenants.servers import MAIN, require_server

logger = logging.getLogger(__name__)

# A tenant that could not be set up is tried again after this: the cause may have been removed.
TRY_AGAIN_AFTER = timedelta(minutes=1)
# Deleting waits this long for requests that are still inside the schema, then gives up.
DROP_LOCK_TIMEOUT = "30s"

# Writes down what was done with a tenant, in the same transaction.
Recorded = Callable[[Tenant], object]


def _unrecorded(tenant: Tenant) -> None:
    """For tests and benchmarks."""


def create_tenant(
    *,
    slug: str,
    name: str = "",
    domain: str = "",
    server: str = "",
    on_register: Recorded = _unrecorded,
) -> Tenant:
    """Register a tenant, make and migrate its schema, and let it serve.

    A process with the owner's role does this. If it fails or is killed, the tenant stays in state
    provisioning, in which it does not serve; calling this again finishes the work. Where the
    owner's worker has begun already, it is waited for.

    Args:
        slug: one label of a host name.
        name: what people read; the slug if empty.
        domain: host name; ``SLUG.<TENANT_DOMAIN_SUFFIX>`` if empty.
        server: name of the database server; one that takes new tenants if empty.
        on_register: called with a new tenant in the transaction that registers it.

    Raises:
        InvalidTenant: slug, name, domain or server cannot be used, or are taken.
        PooledOwner: a connection pooler is between us and Postgres.
        ProvisioningFailed: the schema could not be made or migrated.
    """
    refuse_a_pooled_owner()
    with public_scope():
        tenant = Tenant.objects.filter(slug=slug).first()
        if tenant is None:
            tenant = Tenant(slug=slug, name=name or slug)
            if server:
                require_server(server)
                tenant.server = server
            _register(tenant, domain or default_domain(slug), on_register)
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


def provision_registered() -> int:
    """Make and migrate the schema of each tenant that waits for it; how many serve now.

    A process with the owner's role does this. It passes over a tenant that another process is
    setting up, `create_tenant` for example.
    """
    rested = (
        Q(provisioning_failed_at=None)
        | Q(provisioning_failed_at__lt=Now() - TRY_AGAIN_AFTER)
        | Q(migration_asked_at__isnull=False)
    )
    provisioned = 0
    with public_scope():
        waiting = Tenant.objects.filter(rested, state=Tenant.State.PROVISIONING)
        oldest_failure_last = F("provisioning_failed_at").asc(nulls_first=True)
        for pk in list(waiting.order_by(oldest_failure_last).values_list("pk", flat=True)):
            # Asked anew: the one before took seconds.
            tenant = waiting.filter(pk=pk).first()
            if tenant is None:
                continue
            outcome = migrate_schema(tenant.schema_name, wait_seconds=0)
            if not outcome.error:
                provisioned += 1
            elif not outcome.busy:
                logger.error("tenant %s could not be set up: %s", tenant.slug, outcome.error)
    return provisioned


def ask_to_migrate(tenant: Tenant) -> None:
    """Let the owner's worker set the tenant up, or migrate it, at its next look.

    Raises:
        InvalidTenant: it is up to date.
    """
    if tenant.state != Tenant.State.PROVISIONING and fits(tenant.migrated_to):
        raise InvalidTenant(f"tenant {tenant.slug!r} is up to date")
    Tenant.objects.filter(id=tenant.id).update(migration_asked_at=Now())


def migrate_asked() -> int:
    """Migrate each tenant for which an operator has asked; how many are up to date now.

    A process with the owner's role does this.
    """
    migrated = 0
    with public_scope():
        asked = Tenant.objects.provisioned().filter(migration_asked_at__isnull=False)
        for schema_name in list(asked.values_list("schema_name", flat=True)):
            outcome = migrate_schema(schema_name, wait_seconds=0)
            if not outcome.error:
                migrated += 1
            elif not outcome.busy:
                logger.error("schema %s could not be migrated: %s", schema_name, outcome.error)
    return migrated


def default_domain(slug: str) -> str:
    """Return the host name that a tenant gets where none is given."""
    return f"{slug}.{settings.TENANT_DOMAIN_SUFFIX}"


def suspend_tenant(tenant: Tenant) -> None:
    """Stop serving the tenant; everything stays where it is."""
    _change_state(tenant, Tenant.State.ACTIVE, Tenant.State.SUSPENDED)


def resume_tenant(tenant: Tenant) -> None:
    """Serve a suspended tenant again."""
    _change_state(tenant, Tenant.State.SUSPENDED, Tenant.State.ACTIVE)
    # Where its server is down, what waits is looked at within the hour.
    with suppress(ServerDown), tenant_scope(tenant.id):
        Job.objects.wake()


def delete_tenant(tenant: Tenant, *, on_delete: Recorded = _unrecorded) -> None:
    """Stop serving the tenant, then remove its schema, its cache keys and its registration.

    `on_delete` is called in the transaction that removes it. A process with the owner's role does
    this. It may be called again if it fails half-way.

    Raises:
        SchemaBusy: another process makes, migrates or moves the schema.
        InvalidTenant: it was moved to another server meanwhile.
    """
    with server_scope(tenant.server), schema_lock(tenant.schema_name):
        if Tenant.objects.filter(id=tenant.id).exclude(server=tenant.server, moving_to="").exists():
            raise InvalidTenant(
                f"tenant {tenant.slug!r} was moved meanwhile, or a move of it was cut off: run"
                f" move_tenant {tenant.slug} if it is not served, then delete it"
            )
        Tenant.objects.filter(id=tenant.id).update(state=Tenant.State.SUSPENDED)
        # Before the rows: with the cache down nothing is lost yet, and one can try again.
        forget_cache(tenant)
        connection = tenant_connection()
        # The list's transaction ends last: its row says what there is to delete.
        with transaction.atomic(using=MAIN):
            with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL lock_timeout = '{DROP_LOCK_TIMEOUT}'")
                schema = connection.ops.quote_name(tenant.schema_name)
                cursor.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
                with tenant_scope(tenant.id):
                    Job.objects.all().delete()
            on_delete(tenant)
            Tenant.objects.filter(id=tenant.id).delete()
        # What a request that was still running wrote meanwhile.
        forget_cache(tenant)
    drop_old_copies(tenant.id)


def forget_cache(tenant: Tenant) -> int:
    """Remove every cache key of the tenant; return how many there were."""
    client = get_redis_connection("default")
    keys = list(client.scan_iter(match=all_keys_pattern(tenant.id), count=1000))
    for start in range(0, len(keys), 1000):
        client.unlink(*keys[start : start + 1000])
    return len(keys)


def _register(tenant: Tenant, domain: str, on_register: Recorded) -> None:
    try:
        # The rest is Postgres' to check, without a query for each constraint.
        tenant.clean_fields(exclude=["schema_name", "server"])
        with transaction.atomic():
            tenant.save()
            host = Domain(domain=domain, tenant=tenant)
            host.clean_fields(exclude=["tenant"])
            host.clean()
            host.validate_unique()
            host.save()
            on_register(tenant)
    except ValidationError as error:
        raise InvalidTenant(_sentence(error)) from error
    except IntegrityError as error:
        raise InvalidTenant(
            f"tenant {tenant.slug!r} or domain {domain!r} exists already"
        ) from error


def _sentence(error: ValidationError) -> str:
    return "; ".join(
        f"{field}: {' '.join(messages)}" for field, messages in error.message_dict.items()
    )


def _change_state(tenant: Tenant, before: str, after: str) -> None:
    with public_scope():
        if not Tenant.objects.filter(id=tenant.id, state=before).update(state=after):
            raise InvalidTenant(f"tenant {tenant.slug!r} is not {before}")
        tenant.refresh_from_db()
