"""Base of the tasks that work for one tenant."""

import logging
from typing import Any

from celery import Task
from celery.exceptions import Ignore

from tenants.context import public_scope, tenant_scope
from tenants.exceptions import InvalidTenantId, TenantNotServing, UnknownTenant
from tenants.naming import as_tenant_id
from tenants.outages import OUTAGES, outage_reason
from tenants.serving.rule import require_serving

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
