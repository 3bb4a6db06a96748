"""manage.py list_tenants: a line for each tenant."""

from typing import Any

from tenants.management.base import KonstructCommand
from tenants.models import Tenant
from tenants.servers import servers


class Command(KonstructCommand):
    """Lists the tenants with their state and domains."""

    help = (
        "Lists all tenants: slug, state, domains, day of creation, id, name; with "
        "several database servers, also the server of each."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        rows: list[tuple[str, ...]] = [
            ("SLUG", "STATE", "DOMAINS", "CREATED", "ID", "NAME", "SERVER")
        ]
        for tenant in Tenant.objects.prefetch_related("domains"):
            domains = ",".join(domain.domain for domain in tenant.domains.all())
            created = f"{tenant.created_at:%Y-%m-%d}"
            known = (tenant.slug, tenant.state, domains, created, str(tenant.id), tenant.name)
            rows.append((*known, tenant.server))
        if len(servers()) == 1:
            rows = [row[:-1] for row in rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.stdout.write("  ".join(cells).rstrip())
