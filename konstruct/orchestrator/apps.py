"""App configuration of the orchestrator."""

from django.apps import AppConfig


class OrchestratorConfig(AppConfig):
    """Agents and the messages that wait for their reply, in each tenant's schema."""

    name = "konstruct.orchestrator"
    label = "orchestrator"
    verbose_name = "Agents and replies"
