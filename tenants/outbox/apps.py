"""App configuration of the outbox."""

from django.apps import AppConfig


class OutboxConfig(AppConfig):
    """Events for programs, and webhooks, in each tenant's schema."""

    name = "tenants.outbox"
    label = "outbox"
    verbose_name = "Events"
