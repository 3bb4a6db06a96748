"""App configuration of the channels."""

from django.apps import AppConfig


class ChannelsConfig(AppConfig):
    """Workspaces that are connected, and what is to be shown in them, in each tenant's schema."""

    name = "konstruct.channels"
    label = "channels"
    verbose_name = "Channels"

    def ready(self) -> None:
        """Let the pipeline tell the outbox of every change that a channel has to show."""
        from konstruct.channels import adapters, outlet  # models, which need the apps
        from konstruct.orchestrator import outlets

        for channel in adapters.channels():
            outlets.register(channel, outlet.OUTLET)
