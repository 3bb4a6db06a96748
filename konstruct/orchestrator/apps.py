"""App configuration of the orchestrator."""

from django.apps import AppConfig


class OrchestratorConfig(AppConfig):
    """Agents and the messages that wait for their reply, in each tenant's schema."""

    name = "konstruct.orchestrator"
    label = "orchestrator"
    verbose_name = "Agents and replies"

    def ready(self) -> None:
        """Give memory the agents' languages and time zones."""
        from konstruct.orchestrator.models import Agent  # models need the apps
        from memory.text.lexical import register_agent_locales

        register_agent_locales(Agent.locales_of)
