"""manage.py reindex_words: write the index of words again, beside service."""

from typing import Any

from django.core.management.base import CommandParser

from memory.indexing import reindex_words
from tenants.audit import access_log, models as audit
from tenants.context import tenant_scope
from tenants.management.base import KonstructCommand, add_tenants, tenants_of


class Command(KonstructCommand):
    help = (
        "Writes the words of all messages and names to the index again, after an update that cuts "
        "words otherwise. Agents answer meanwhile. It can be interrupted and repeated."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_tenants(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        for tenant in tenants_of(options):
            with tenant_scope(tenant.id):
                access_log.record_command(self.name, audit.Action.EDIT, "words")
            for done, total in reindex_words(tenant.id):
                self.stdout.write(f"{tenant.slug}: {done} of {total}")
