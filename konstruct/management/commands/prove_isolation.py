"""manage.py prove_isolation: read the catalogue of each server."""

from typing import Any

from django.core.management.base import CommandError

from tenants.checks import check_database
from tenants.management.base import KonstructCommand
from tenants.servers import servers


class Command(KonstructCommand):
    """Shows the findings of the database's system checks as the proof of isolation."""

    help = (
        "Checks the role of this process, and policies and grants of all tenants, by the catalogue"
        " of each server. Exit status 1 if one of them does not isolate tenants."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        found = check_database(None, databases=servers())
        for message in found:
            self.stdout.write(f"{message.id}: {message.msg} -> {message.hint}")
        if found:
            raise CommandError(f"{len(found)} findings: see docs/trust.md")
        self.stdout.write(f"role, policies and grants isolate tenants on {', '.join(servers())}")
