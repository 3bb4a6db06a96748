"""App configuration of the channels."""

from django.apps import AppConfig


class ChannelsConfig(AppConfig):
    """Connected workspaces, events and deliveries, in each tenant's schema."""

    name = "konstruct.channels"
    label = "channels"
    verbose_name = "Channels"

    def ready(self) -> None:
        """Register the channels that push their replies. A new one is a line here."""
        # Models, which need the apps.
        from konstruct.channels.delivery import adapter as adapters, queue
        from konstruct.channels.slack.adapter import SlackAdapter
        from konstruct.orchestrator import replies

        for adapter in (SlackAdapter(),):
            adapters.register(adapter)
            replies.register(adapter.channel, queue.HOOK, shares_threads=adapter.shares_threads)
