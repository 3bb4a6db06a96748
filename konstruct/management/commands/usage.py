"""manage.py usage: what tenants used in a month."""

from argparse import ArgumentParser
from typing import Any

from konstruct.orchestrator.monthly import COLUMNS, csv_lines, month_of, rows_of
from konstruct.orchestrator.usage import first_of_month
from tenants.context import public_scope
from tenants.management.base import KonstructCommand, UsageError, tenant_of
from tenants.models import Tenant


class Command(KonstructCommand):
    """Prints the usage of a month, tenant by tenant."""

    help = "Prints what tenants used in a month (UTC): messages, calls, tokens, money, storage."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", metavar="SLUG", help="Of one tenant; else of all.")
        parser.add_argument("--month", metavar="YYYY-MM", help="The month; else this one.")
        parser.add_argument("--csv", action="store_true", help="As CSV, one line a tenant.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            first = month_of(options["month"]) if options["month"] else first_of_month()
        except ValueError:
            raise UsageError("--month: give a month such as 2026-11") from None
        with public_scope():
            tenants = (
                [tenant_of(options["tenant"])]
                if options["tenant"]
                else list(Tenant.objects.provisioned())
            )
        rows = rows_of(tenants, first)
        if options["csv"]:
            for line in csv_lines(rows):
                self.stdout.write(line, ending="")
            return
        for row in rows:
            self.stdout.write(f"{row['tenant']} {row['month']}")
            for name in COLUMNS[2:]:
                value = row.get(name)
                self.stdout.write(f"  {name}: {'' if value is None else value}")
