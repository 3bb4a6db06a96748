"""The database router: the server of a model's rows and tables."""

from typing import Any, cast

from django.conf import settings
from django.db import connections
from django.db.models import Model
from django_tenants.routers import TenantSyncRouter

from tenants.context import current_server
from tenants.postgresql.base import DatabaseWrapper
from tenants.servers import MAIN, servers


class ServerRouter(TenantSyncRouter):
    """Routes the list of tenants to the main server, and other models to the current tenant's."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        server = current_server()
        describes_tenants = model._meta.app_label == "tenants" and model._meta.model_name != "job"
        return MAIN if server != MAIN and describes_tenants else server

    def db_for_write(self, model: type[Model], **hints: Any) -> str:
        return self.db_for_read(model)

    def allow_migrate(
        self, db: str, app_label: str, model_name: str | None = None, **hints: Any
    ) -> bool:
        """Every server has every table: of the public schema, or of each tenant's."""
        if db not in servers():
            return False
        is_public = cast(DatabaseWrapper, connections[db]).tenant_id is None
        wanted = settings.SHARED_APPS if is_public else settings.TENANT_APPS
        allowed: bool = self.app_in_list(app_label, wanted)
        return allowed
