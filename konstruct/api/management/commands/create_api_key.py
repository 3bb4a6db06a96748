"""manage.py create_api_key: a key for a program, printed once."""

from argparse import ArgumentParser
from typing import Any

from konstruct.api.access import KeyInvalid, issue_key
from tenants.management.base import KonstructCommand, UsageError, tenant_of


class Command(KonstructCommand):
    """Creates an API key and prints it, alone, on standard output."""

    help = "Creates an API key of a tenant. It is shown once: only its hash is stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="Whose key it is.")
        parser.add_argument("--name", required=True, help="Which program uses it, for people.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["tenant"])
        try:
            _, text = issue_key(tenant_id=tenant.id, name=options["name"])
        except KeyInvalid as error:
            raise UsageError(str(error)) from error
        self.stdout.write(str(text))
