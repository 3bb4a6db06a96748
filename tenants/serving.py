"""Which tenants are served, the base of their tasks, and their claims of workspaces."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from celery import Task
from celery.exceptions import Ignore
from django.conf import settings
from django.db import DatabaseError, IntegrityError, transaction  # noqa: TID251 (claims are on the main server)
from psycopg.errors import UndefinedTable

from tenants.context import (
    current_server,
    current_tenant_id,
    public_scope,
    required_tenant_id,
    tenant_scope,
)
from tenants.exceptions import (
    InvalidTenantId,
    TenantBehind,
    TenantMoving,
    TenantNotServing,
    TenantRestoring,
    UnknownTenant,
    WorkspaceTaken,
)
from tenants.models import Tenant, WorkspaceClaim
from tenants.naming import as_tenant_id
from tenants.outages import OUTAGES, outage_reason
from tenants.schemas.migration_state import fits
from tenants.servers import MAIN, note_server


def require_serving(tenant_id: UUID) -> Tenant:
    """Return the tenant if its requests and tasks may be done; note where it is.

    Works in the public schema and inside the tenant, which sees its own row.

    Raises:
        UnknownTenant: there is none with this id.
        TenantNotServing: it is suspended, or not provisioned yet.
        TenantBehind: its schema and this code do not fit.
        TenantMoving: it is on its way to another server.
        TenantRestoring: it is being restored from a backup.
    """
    tenant = Tenant.objects.filter(id=tenant_id).first()
    if tenant is None:
        raise UnknownTenant(f"no tenant has the id {tenant_id}")
    note_server(tenant_id, tenant.server)
    refuse_unless_serving(tenant)
    return tenant


def refuse_unless_serving(tenant: Tenant) -> None:
    """Raise if the tenant's requests and tasks may not be done, as `require_serving` does."""
    if tenant.state == Tenant.State.RESTORING:
        raise TenantRestoring(tenant.slug)
    if tenant.state != Tenant.State.ACTIVE:
        raise TenantNotServing(tenant.slug, tenant.state)
    if tenant.moving_to:
        raise TenantMoving(tenant.slug)
    if not fits(tenant.migrated_to):
        raise TenantBehind(tenant.slug)


_of_request: ContextVar[Tenant | None] = ContextVar("tenant_of_request", default=None)


@contextmanager
def served_with(tenant: Tenant) -> Iterator[None]:
    """Take the limits and the measured usage of a tenant from this row of it during the block.

    For a request, which has read the row at its beginning.
    """
    token = _of_request.set(tenant)
    try:
        yield
    finally:
        _of_request.reset(token)


def tenant_of_request() -> Tenant | None:
    """Return the row of the tenant that the request is served with; None outside of requests."""
    return _of_request.get()


def moved_meanwhile(error: Exception) -> TenantMoving | None:
    """What an error means that was raised in a tenant, if it was moved since it was entered."""
    tenant_id = current_tenant_id()
    is_missing = isinstance(error, UndefinedTable) or isinstance(error.__cause__, UndefinedTable)
    if not (settings.TENANT_DATABASES and tenant_id and is_missing):
        return None
    with suppress(DatabaseError):
        tenant = Tenant.objects.filter(id=tenant_id).first()
        if tenant is not None and (tenant.moving_to or tenant.server != current_server()):
            note_server(tenant_id, tenant.server)
            return TenantMoving(tenant.slug)
    return None


def claim_workspace(channel: str, workspace: str) -> None:
    """Let the workspace be the tenant's that we are in; again changes nothing.

    Raises:
        WorkspaceTaken: it is another tenant's.
    """
    tenant_id = required_tenant_id()
    try:
        with transaction.atomic(using=MAIN):
            WorkspaceClaim.objects.create(channel=channel, workspace=workspace, tenant_id=tenant_id)
    except IntegrityError:
        # Another tenant's claim cannot be seen from here.
        if not WorkspaceClaim.objects.filter(channel=channel, workspace=workspace).exists():
            raise WorkspaceTaken(
                f"The {channel} workspace {workspace} is connected elsewhere. It has to be "
                "disconnected there first."
            ) from None


def release_workspace(channel: str, workspace: str) -> None:
    """Release the workspace, if it belongs to the current tenant."""
    WorkspaceClaim.objects.filter(
        channel=channel, workspace=workspace, tenant_id=required_tenant_id()
    ).delete()


def find_claim(channel: str, workspace: str) -> WorkspaceClaim | None:
    """Return the claim of a workspace, with its tenant: one indexed query."""
    with public_scope():
        claims = WorkspaceClaim.objects.select_related("tenant")
        return claims.filter(channel=channel, workspace=workspace).first()


def tenant_of_workspace(channel: str, workspace: str) -> UUID | None:
    """Return the tenant that has claimed the workspace."""
    claim = find_claim(channel, workspace)
    return None if claim is None else claim.tenant_id


logger = logging.getLogger(__name__)


class TenantTask(Task):
    """Runs inside the tenant that is the task's first argument (or ``tenant_id=``), pinned to it.

    Work of a tenant that is suspended or gone is dropped with a log line: what must not be lost
    waits in the outbox, where workers find it when the tenant is active again.
    """

    abstract = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._run_in_tenant(*args, **kwargs)
        except OUTAGES as error:
            if self.request.called_directly:
                raise
            # The outbox keeps the work. The traceback of an outage does not help.
            logger.warning("task %s waits: %s", self.name, outage_reason(error))
            raise Ignore from error

    def _run_in_tenant(self, *args: Any, **kwargs: Any) -> Any:
        tenant_id = kwargs.get("tenant_id", args[0] if args else None)
        if tenant_id is None:
            raise InvalidTenantId(f"task {self.name} was called without a tenant_id")
        try:
            with public_scope():
                # First, for it says on which server the tenant is entered.
                require_serving(as_tenant_id(tenant_id))
        except (TenantNotServing, UnknownTenant) as refusal:
            if self.request.called_directly:
                raise
            logger.warning("task %s dropped: %s", self.name, refusal)
            raise Ignore from refusal
        with tenant_scope(tenant_id, pinned=True):
            return super().__call__(*args, **kwargs)
