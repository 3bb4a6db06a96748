"""App configuration of isolation, in every tenant's schema."""

from django.apps import AppConfig


class IsolationConfig(AppConfig):
    """No models: its migrations give Django's own tables a tenant, a policy and grants."""

    name = "tenants.isolation"
    label = "isolation"
    verbose_name = "Isolation"
