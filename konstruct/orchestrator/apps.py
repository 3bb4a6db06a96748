"""App configuration of the orchestrator."""

from django.apps import AppConfig


class OrchestratorConfig(AppConfig):
    """Agents and the messages that wait for their reply, in each tenant's schema."""

    name = "konstruct.orchestrator"
    label = "orchestrator"
    verbose_name = "Agents and replies"

    def ready(self) -> None:
        """Notify people of jobs that fail permanently, and give memory the agents' languages."""
        from konstruct.orchestrator.models import Agent  # models need the apps
        from konstruct.orchestrator.notifications import notify
        from memory.text.languages import register_agent_languages
        from tenants.jobs import on_given_up

        on_given_up(notify)
        register_agent_languages(Agent.languages_of)
