"""manage.py set_up_tenant: create the missing ones of a tenant, its admin, an agent, an API key."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command

from konstruct.api.models import ApiKey
from konstruct.orchestrator.models import Agent
from tenants.context import tenant_scope
from tenants.management.base import KonstructCommand
from tenants.models import Tenant

KEY = "first"


class Command(KonstructCommand):
    """Runs the commands that create a tenant's parts; a second run changes nothing."""

    help = (
        "Creates what a new deployment needs to answer: a tenant, the first user of its admin, an "
        "agent and an API key. Existing ones are not changed, and their passwords and keys not "
        "shown."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="Short name of the tenant, as for create_tenant.")
        parser.add_argument("--name", default="", help="Display name (default: SLUG).")
        parser.add_argument(
            "--domain", default="", help="Host name (default: that of create_tenant)."
        )
        parser.add_argument(
            "--username", default="admin", help="Username of the admin (default: admin)."
        )
        parser.add_argument(
            "--agent", default="assistant", help="Name of the agent (default: assistant)."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["slug"]
        if not Tenant.objects.exclude(state=Tenant.State.PROVISIONING).filter(slug=slug).exists():
            placement = {name: options[name] for name in ("name", "domain")}
            call_command("create_tenant", slug, stdout=self.stdout, **placement)
        tenant = Tenant.objects.get(slug=slug)
        users = get_user_model().objects.filter(username=options["username"])
        agents = Agent.objects.filter(name=options["agent"])
        keys = ApiKey.objects.filter(name=KEY)
        for part, existing, command, arguments in (
            ("admin", users, "create_tenant_admin", {"username": options["username"]}),
            ("agent", agents, "create_agent", {"name": options["agent"]}),
            ("API key", keys, "create_api_key", {"name": KEY}),
        ):
            with tenant_scope(tenant.id):
                exists = existing.exists()
            if exists:
                self.stdout.write(f"tenant {slug} has its {part} already")
                continue
            if existing is keys:
                self.stdout.write("API key, shown this once: ", ending="")
            call_command(command, tenant=slug, stdout=self.stdout, **arguments)
