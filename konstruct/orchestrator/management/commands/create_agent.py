"""manage.py create_agent: create an agent of a tenant."""

from argparse import ArgumentParser
from typing import Any, Final

from konstruct.orchestrator import agents, models
from tenants import context, transaction
from tenants.audit import access_log, changes, models as audit
from tenants.management.base import KonstructCommand, tenant_of

TEXTS: Final = {
    "--system-prompt": "System prompt: the agent's purpose and rules.",
    "--identity": "Identity of the agent.",
    "--persona": "Persona: the agent's style.",
    "--model": "Model name (default: LLM_MODEL, or by tier).",
}


class Command(KonstructCommand):
    """Creates an agent."""

    help = "Creates an agent of a tenant; its recall policy is edited in the tenant's admin."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="Tenant of the agent.")
        parser.add_argument(
            "--name", required=True, help="Name of the agent, for programs and people."
        )
        for option, text in TEXTS.items():
            parser.add_argument(option, default="", help=text)
        parser.add_argument(
            "--model-tier",
            default=models.ModelTier.FAST,
            choices=models.ModelTier.values,
            help="fast (default) or reasoning.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["tenant"])
        fields = ("system_prompt", "identity", "persona", "model", "model_tier")
        with context.tenant_scope(tenant.id), transaction.atomic():
            agent = agents.create_agent(
                tenant_id=tenant.id,
                name=options["name"],
                **{field: options[field] for field in fields},
            )
            access_log.record_command(
                self.name, audit.Action.CREATE, agent, after=changes.row_state(agent)
            )
        self.stdout.write(f"created agent {agent.name} ({agent.id}) of tenant {tenant.slug}")
