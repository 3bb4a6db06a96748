"""manage.py clearsessions: Django's, for the operators' sessions and those of every tenant."""

from importlib import import_module
from typing import Any

from django.conf import settings

from tenants.context import public_scope, tenant_scope
from tenants.management.base import KonstructCommand
from tenants.models import Tenant


class Command(KonstructCommand):
    """Removes sessions of the admin that have expired."""

    help = "Removes expired sessions of the admin, of operators and of every tenant."

    def handle(self, *args: Any, **options: Any) -> None:
        sessions = import_module(settings.SESSION_ENGINE).SessionStore
        with public_scope():
            sessions.clear_expired()
        for tenant in Tenant.objects.exclude(state=Tenant.State.PROVISIONING).order_by("slug"):
            with tenant_scope(tenant.id):
                sessions.clear_expired()
