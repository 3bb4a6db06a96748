"""manage.py retention: show and change how long a tenant's conversations are kept."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from konstruct.orchestrator.agents import find_agent
from konstruct.orchestrator.models import Agent
from konstruct.privacy.retention import apply_rules
from tenants import transaction
from tenants.audit.access_log import record_command
from tenants.audit.changes import row_state
from tenants.audit.models import Action, RetentionRule
from tenants.context import tenant_scope
from tenants.management.base import KonstructCommand, UsageError, tenant_of


class Command(KonstructCommand):
    """Shows, sets and removes rules, and applies them."""

    help = (
        "Shows how long conversations are kept, or changes it. Without a rule they are "
        "kept indefinitely. The owner worker applies the rules every hour."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--tenant", required=True, metavar="SLUG", help="Tenant of the conversations."
        )
        parser.add_argument(
            "--agent",
            metavar="NAME_OR_ID",
            help="Agent of the rule (default: the rule for all other agents).",
        )
        change = parser.add_mutually_exclusive_group()
        change.add_argument("--days", type=int, help="Number of days to keep conversations.")
        change.add_argument("--off", action="store_true", help="Remove the rule.")
        parser.add_argument("--apply", action="store_true", help="Apply all rules now.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["tenant"])
        if options["days"] is not None and not 1 <= options["days"] <= 36_500:
            raise UsageError("--days: give a whole number of days, from 1 to 36500")
        with tenant_scope(tenant.id):
            agent_id = find_agent(options["agent"]).id if options["agent"] else None
            self._change(agent_id, days=options["days"], off=options["off"])
            names = {agent.pk: agent.name for agent in Agent.objects.all()}
            if options["apply"]:
                for removed in apply_rules():
                    name = names.get(removed.agent_id, removed.agent_id)
                    self.stdout.write(
                        f"removed {removed.messages} messages of {removed.users} users with {name},"
                        f" older than {removed.days} days"
                    )
            rules = RetentionRule.objects.order_by("created_at")
            for rule in rules:
                agent_name = (
                    names.get(rule.agent_id, rule.agent_id) if rule.agent_id else "all others"
                )
                self.stdout.write(
                    f"{tenant.slug}: {agent_name}: {rule.days} days{_pending_change(rule)}"
                )
            if not rules:
                self.stdout.write(f"{tenant.slug}: conversations are kept indefinitely")

    def _change(self, agent_id: UUID | None, *, days: int | None, off: bool) -> None:
        with transaction.atomic():
            rule = RetentionRule.objects.select_for_update().filter(agent_id=agent_id).first()
            before = row_state(rule)
            if days:
                rule, is_new = RetentionRule.objects.update_or_create(
                    agent_id=agent_id,
                    defaults={"days": days, "next_days": None, "effective_at": None},
                )
                rule.refresh_from_db()
                action = Action.CREATE if is_new else Action.EDIT
                record_command(self.name, action, rule, before=before, after=row_state(rule))
            elif off and rule is not None:
                record_command(self.name, Action.DELETE, rule, before=before)
                rule.delete()


def _pending_change(rule: RetentionRule) -> str:
    if rule.effective_at is None:
        return ""
    return f", {rule.next_days} from {rule.effective_at:%Y-%m-%d %H:%M} UTC"
