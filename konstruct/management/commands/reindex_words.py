"""manage.py reindex_words: write the index of words again, beside service."""

from typing import Any

from django.core.management.base import CommandParser

from memory.indexing.service import reindex_words
from tenants.audit.access_log import record_command
from tenants.audit.models import Action
from tenants.context import tenant_scope
from tenants.management.base import KonstructCommand, tenant_of
from tenants.models import Tenant


class Command(KonstructCommand):
    help = (
        "Writes the words of all messages and names to the index again, after an update that "
        "folds, stems or cuts words otherwise. Agents answer meanwhile. It can be interrupted and "
        "repeated."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--tenant", metavar="SLUG", help="One tenant.")
        which.add_argument("--all", action="store_true", help="All active tenants.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenants = (
            list(Tenant.objects.serving().order_by("slug"))
            if options["all"]
            else [tenant_of(options["tenant"])]
        )
        for tenant in tenants:
            with tenant_scope(tenant.id):
                record_command(self.name, Action.EDIT, "words")
            for progress in reindex_words(tenant.id):
                self.stdout.write(f"{tenant.slug}: {progress.done} of {progress.total}")
