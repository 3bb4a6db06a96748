"""App configuration of isolation, in every tenant's schema."""

from django.apps import AppConfig


class IsolationConfig(AppConfig):
    """No models: its migrations add a tenant column, policies and grants to Django's tables."""

    name = "tenants.isolation"
    label = "isolation"
    verbose_name = "Isolation"
