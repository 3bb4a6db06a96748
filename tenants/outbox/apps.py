"""App configuration of the outbox."""

from functools import partial

from django.apps import AppConfig


class OutboxConfig(AppConfig):
    """Events for programs, and webhooks, in each tenant's schema."""

    name = "tenants.outbox"
    label = "outbox"
    verbose_name = "Events"

    def ready(self) -> None:
        """Record jobs that fail for good."""
        from tenants.jobs import on_given_up  # models need the apps
        from tenants.outbox.events import record_event
        from tenants.outbox.models import EventType

        on_given_up(partial(record_event, EventType.JOB_FAILED))
