"""Tenants that are served, the base of their tasks, and their claims of workspaces."""

import logging
from contextlib import suppress
from typing import Any
from uuid import UUID

from celery import Task
from celery.exceptions import Ignore
from django.conf import settings
from django.db import DatabaseError, IntegrityError, transaction  # noqa: TID251 (claims are on the main server)
from psycopg.errors import UndefinedTable

from tenants import context, exceptions, naming, outages, servers
from tenants.models import Tenant, WorkspaceClaim
from tenants.schemas.migrating import fits


def require_serving(tenant_id: UUID) -> Tenant:
    """Return the tenant if its requests and tasks may run, and cache its server.

    Raises:
        UnknownTenant: there is no tenant with this id.
        TenantNotServing: it is suspended, or not provisioned yet.
        TenantBehind: its schema does not fit this code.
        TenantMoving: it is being moved to another server.
        TenantRestoring: it is being restored from a backup.
    """
    tenant = find_tenant(tenant_id)
    refuse_unless_serving(tenant)
    return tenant


def find_tenant(tenant_id: UUID) -> Tenant:
    """Return a tenant in any state, and cache its server.

    Works in the public schema and inside the tenant, which can read its own row.

    Raises:
        UnknownTenant: there is no tenant with this id.
    """
    tenant = Tenant.objects.filter(id=tenant_id).first()
    if tenant is None:
        raise exceptions.UnknownTenant(f"no tenant has the id {tenant_id}")
    servers.cache_server(tenant_id, tenant.server)
    return tenant


def refuse_unless_serving(tenant: Tenant) -> None:
    """Raise if the tenant's requests and tasks may not run, as `require_serving` does."""
    if tenant.state == Tenant.State.RESTORING:
        raise exceptions.TenantRestoring(tenant.slug)
    if tenant.state != Tenant.State.ACTIVE:
        to_be_deleted = tenant.deletion_asked_at is not None
        raise exceptions.TenantNotServing(tenant.slug, tenant.state, is_to_be_deleted=to_be_deleted)
    if tenant.moving_to:
        raise exceptions.TenantMoving(tenant.slug)
    if not fits(tenant.migrated_to):
        raise exceptions.TenantBehind(tenant.slug)


def tenant_of_request() -> Tenant | None:
    """Return the row of the request's tenant, with its quotas; None outside of requests.

    Middleware sets it as django-tenants' `connection.tenant`.
    """
    tenant = context.connection.tenant
    return tenant if isinstance(tenant, Tenant) else None


def as_tenant_moving(error: Exception) -> exceptions.TenantMoving | None:
    """Return a TenantMoving if the error comes from a tenant that was moved, else None."""
    tenant_id = context.current_tenant_id()
    is_missing = isinstance(error, UndefinedTable) or isinstance(error.__cause__, UndefinedTable)
    if not (settings.TENANT_DATABASES and tenant_id and is_missing):
        return None
    with suppress(DatabaseError):
        tenant = Tenant.objects.filter(id=tenant_id).first()
        if tenant is not None and (tenant.moving_to or tenant.server != context.current_server()):
            servers.cache_server(tenant_id, tenant.server)
            return exceptions.TenantMoving(tenant.slug)
    return None


def claim_workspace(channel: str, workspace: str) -> None:
    """Claim the workspace for the current tenant. Repeating it has no effect.

    Raises:
        WorkspaceTaken: another tenant has claimed it.
    """
    tenant_id = context.required_tenant_id()
    try:
        with transaction.atomic(using=servers.MAIN):
            WorkspaceClaim.objects.create(channel=channel, workspace=workspace, tenant_id=tenant_id)
    except IntegrityError:
        # Another tenant's claim is not visible here.
        if not WorkspaceClaim.objects.filter(channel=channel, workspace=workspace).exists():
            raise exceptions.WorkspaceTaken(
                f"The {channel} workspace {workspace} is connected elsewhere. It has to be "
                "disconnected there first."
            ) from None


def release_workspace(channel: str, workspace: str) -> None:
    """Release the workspace, if it belongs to the current tenant."""
    WorkspaceClaim.objects.filter(
        channel=channel, workspace=workspace, tenant_id=context.required_tenant_id()
    ).delete()


def find_claim(channel: str, workspace: str) -> WorkspaceClaim | None:
    """Return the claim of a workspace, with its tenant: one indexed query."""
    with context.public_scope():
        claims = WorkspaceClaim.objects.select_related("tenant")
        return claims.filter(channel=channel, workspace=workspace).first()


logger = logging.getLogger(__name__)


class TenantTask(Task):
    """Runs in the tenant of the first argument (or ``tenant_id=``), pinned to it.

    A task of a suspended or deleted tenant is dropped with a log line: work that must not be lost
    is in the job table, where workers find it when the tenant is active again.
    """

    abstract = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tenant_id = kwargs.get("tenant_id", args[0] if args else None)
        if tenant_id is None:
            raise exceptions.InvalidTenantId(f"task {self.name} was called without a tenant_id")
        try:
            with context.public_scope():
                # First, because it gives the server on which the tenant is entered.
                require_serving(naming.as_tenant_id(tenant_id))
            with context.tenant_scope(tenant_id):
                return super().__call__(*args, **kwargs)
        except (exceptions.TenantNotServing, exceptions.UnknownTenant, *outages.OUTAGES) as error:
            if self.request.called_directly:
                raise
            # The job stays in its table. The traceback of an outage does not help.
            logger.warning("task %s is not run: %s", self.name, outages.outage_reason(error))
            raise Ignore from error
