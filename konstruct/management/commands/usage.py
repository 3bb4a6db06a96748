"""manage.py usage: print the usage of tenants in a month."""

from argparse import ArgumentParser
from typing import Any

from konstruct.orchestrator.monthly import COLUMNS, csv_lines, month_of, rows_of
from konstruct.orchestrator.usage import first_of_month
from tenants.context import public_scope
from tenants.management.base import KonstructCommand, UsageError, tenant_of
from tenants.models import Tenant


class Command(KonstructCommand):
    """Prints the usage of a month, tenant by tenant."""

    help = "Prints the usage of tenants in a month (UTC): messages, calls, tokens, cost, storage."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", metavar="SLUG", help="One tenant (default: all).")
        parser.add_argument("--month", metavar="YYYY-MM", help="Month (default: the current one).")
        parser.add_argument("--csv", action="store_true", help="Print CSV, one line per tenant.")

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
