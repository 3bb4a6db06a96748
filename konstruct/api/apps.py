"""App configuration of the REST API."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """API keys, in each tenant's schema."""

    name = "konstruct.api"
    label = "api"
    verbose_name = "API access"
