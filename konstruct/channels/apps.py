"""App configuration of the channels."""

from django.apps import AppConfig


class ChannelsConfig(AppConfig):
    """Connected workspaces, events and deliveries, in each tenant's schema."""

    name = "konstruct.channels"
    label = "channels"
    verbose_name = "Channels"

    def ready(self) -> None:
        """Register the channels with an inbox, and those that push their replies."""
        # Models, which need the apps.
        from konstruct.channels import delivery, inbox
        from konstruct.channels.slack import adapter, inbound

        delivery.register(adapter.SlackAdapter())
        inbox.HANDLERS[inbound.CHANNEL] = inbound.handle
