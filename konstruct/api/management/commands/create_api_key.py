"""manage.py create_api_key: a key for a program, printed once."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.utils import timezone

from konstruct.api.auth.keys import issue_key
from konstruct.api.models import DEFAULT_SCOPES, KeyScope
from konstruct.orchestrator.agents import find_agent
from tenants import context, transaction
from tenants.audit import changes, models
from tenants.audit.access_log import record_command
from tenants.management.base import KonstructCommand, UsageError, tenant_of

MAX_DAYS = 36_500


class Command(KonstructCommand):
    """Creates an API key and prints it, alone, on standard output."""

    help = "Creates an API key of a tenant. It is shown once: only its hash is stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="Tenant of the key.")
        parser.add_argument("--name", required=True, help="Name of the program that uses the key.")
        parser.add_argument(
            "--scope",
            action="append",
            choices=KeyScope.values,
            help="Scope of the key; may be repeated (default: read and write).",
        )
        parser.add_argument("--agent", metavar="NAME_OR_ID", help="Restrict the key to one agent.")
        parser.add_argument("--user", help="Restrict the key to one end user.")
        parser.add_argument("--days", type=int, help="Days after which the key expires.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["tenant"])
        agent_id, days = None, options["days"]
        if days is not None and not 1 <= days <= MAX_DAYS:
            raise UsageError(f"--days: give a whole number of days from 1 to {MAX_DAYS:,}")
        with context.tenant_scope(tenant.id), transaction.atomic():
            if options["agent"] is not None:
                agent_id = find_agent(options["agent"]).id
            key, text = issue_key(
                tenant_id=tenant.id,
                name=options["name"],
                scopes=options["scope"] or DEFAULT_SCOPES,
                agent_id=agent_id,
                user_id=options["user"],
                expires_at=days and timezone.now() + timedelta(days=days),
            )
            record_command(self.name, models.Action.CREATE, key, after=changes.row_state(key))
        self.stdout.write(str(text))
