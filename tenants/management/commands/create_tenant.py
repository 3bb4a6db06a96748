"""manage.py create_tenant: register a tenant, create its schema, and activate it."""

from typing import Any

from tenants.audit.operator_log import record_command, state_of_tenant
from tenants.management.base import KonstructCommand
from tenants.schemas import provisioning


class Command(KonstructCommand):
    """Creates a tenant. Running it again completes an interrupted creation."""

    help = "Creates a tenant with its own schema, served at its own domain."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument(
            "slug", help="Short name for the host name: letters, digits and hyphens."
        )
        parser.add_argument("--name", default="", help="Display name (default: SLUG).")
        parser.add_argument(
            "--domain",
            default="",
            help="Host name of the tenant (default: SLUG.localhost; see TENANT_DOMAIN_SUFFIX).",
        )

        parser.add_argument(
            "--server",
            default="",
            help=(
                "Database server of the tenant: default, or one of TENANT_DATABASES (default: "
                "the one with the fewest tenants)."
            ),
        )

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = provisioning.create_tenant(
            slug=options["slug"],
            name=options["name"],
            domain=options["domain"],
            server=options["server"],
            on_register=lambda made: record_command(
                self.name, "create", made, after=state_of_tenant(made)
            ),
        )
        domains = ", ".join(tenant.domains.values_list("domain", flat=True))
        self.stdout.write(f"created tenant {tenant.slug} ({tenant.id}) at {domains}")
