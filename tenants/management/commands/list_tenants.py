"""manage.py list_tenants: a line for each tenant."""

from typing import Any

from tenants.management.base import KonstructCommand
from tenants.models import Tenant


class Command(KonstructCommand):
    """Lists the tenants with their state and domains."""

    help = "Lists all tenants: slug, state, domains, day of creation, id, name."

    def handle(self, *args: Any, **options: Any) -> None:
        rows = [("SLUG", "STATE", "DOMAINS", "CREATED", "ID", "NAME")]
        for tenant in Tenant.objects.prefetch_related("domains"):
            domains = ",".join(domain.domain for domain in tenant.domains.all())
            created = f"{tenant.created_at:%Y-%m-%d}"
            rows.append((tenant.slug, tenant.state, domains, created, str(tenant.id), tenant.name))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.stdout.write("  ".join(cells).rstrip())
