"""manage.py reembed: embed messages with another model, beside their current vectors."""

from typing import Any

from django.core.management.base import CommandParser

from memory.embedding.embedder import Embedder, model_files, model_version
from memory.facts.service import reembed_facts
from memory.indexing import reembed
from tenants.audit.access_log import record_command
from tenants.audit.models import Action
from tenants.context import tenant_scope
from tenants.management.base import KonstructCommand, add_tenants, tenants_of


class Command(KonstructCommand):
    help = (
        "Embeds all messages with another model, beside their current vectors. It can be "
        "interrupted. Then set EMBEDDING_MODEL, restart, and run it once more, for facts and new "
        "messages."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_tenants(parser)
        parser.add_argument(
            "--model",
            metavar="PATH_OR_NAME",
            help=(
                "Directory or hub name of a sentence-transformers model with 384 dimensions, to "
                "which recall is fitted (default: EMBEDDING_MODEL)."
            ),
        )

    def handle(self, *args: Any, **options: Any) -> None:
        tenants = tenants_of(options)
        embedder = Embedder(model_files(options["model"]))
        for tenant in tenants:
            with tenant_scope(tenant.id):
                # Before it begins: it has many transactions, and can be interrupted in each.
                record_command(self.name, Action.EDIT, "vectors", model=embedder.version)
            for done, total in reembed(tenant.id, embedder):
                self.stdout.write(f"{tenant.slug}: {done} of {total}")
        if embedder.version == model_version():
            # A fact has one vector, of the current model: it is embedded after the switch.
            for tenant in tenants:
                facts = 0
                # Ends: each batch gets vectors of the current model.
                while done := reembed_facts(tenant.id):
                    facts += done
                if facts:
                    self.stdout.write(f"{tenant.slug}: {facts} facts")
            self.stdout.write(f"Recall uses {embedder.version}.")
        else:
            self.stdout.write(
                f"Every message has vectors of {embedder.version}. Recall still uses"
                f" {model_version()}: set EMBEDDING_MODEL={options['model']} and restart."
            )
