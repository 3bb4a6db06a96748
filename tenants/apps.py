"""App configuration of tenancy, in the public schema."""

from django.apps import AppConfig


class TenantsConfig(AppConfig):
    """Tenants and their domains."""

    name = "tenants"
    verbose_name = "Tenants"

    def ready(self) -> None:
        from tenants.checks import system
        from tenants.schemas import content_types  # both need the app registry

        system.register_all()
        content_types.cache_per_connection()
