"""App configuration of roles and the access log."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AuditConfig(AppConfig):
    """The access log, in each tenant's schema. Last of the tenant's apps: roles need the others."""

    name = "tenants.audit"
    label = "audit"
    verbose_name = "Access"

    def ready(self) -> None:
        from tenants.audit.roles import create_roles  # needs the app registry

        # As Django does with permissions, which are rows that no migration can know of either.
        post_migrate.connect(create_roles, sender=self)
