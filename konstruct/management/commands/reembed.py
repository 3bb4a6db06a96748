"""manage.py reembed: vectors of another model, beside the present ones."""

from typing import Any

from django.core.management.base import CommandParser

from memory.embedding.embedder import Embedder, model_version
from memory.embedding.model_files import model_files
from memory.facts import reembed_facts
from memory.indexing.reembed import reembed
from tenants.audit.access_log import record_command
from tenants.audit.models import Action
from tenants.context import tenant_scope
from tenants.management.base import KonstructCommand, tenant_of
from tenants.models import Tenant


class Command(KonstructCommand):
    help = (
        "Embeds all messages with another model, beside their present vectors. It can be stopped"
        " and begun again. When it is done, let EMBEDDING_MODEL name that model and restart: that"
        " is the switch. Then run it once more, for facts and for what was said meanwhile."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        whose = parser.add_mutually_exclusive_group(required=True)
        whose.add_argument("--tenant", metavar="SLUG", help="One tenant.")
        whose.add_argument("--all", action="store_true", help="All tenants that serve.")
        parser.add_argument(
            "--model",
            metavar="PATH_OR_NAME",
            help="Directory or hub name of a sentence-transformers model of 384 dimensions."
            " By default the one that EMBEDDING_MODEL names.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        tenants = (
            list(Tenant.objects.serving().order_by("slug"))
            if options["all"]
            else [tenant_of(options["tenant"])]
        )
        embedder = Embedder(model_files(options["model"]))
        for tenant in tenants:
            with tenant_scope(tenant.id):
                # Before it begins: it is many transactions, and can be stopped in any.
                record_command(self.name, Action.EDIT, "vectors", model=embedder.version)
            for progress in reembed(tenant.id, embedder):
                self.stdout.write(f"{tenant.slug}: {progress.done} of {progress.total}")
        if embedder.version == model_version():
            # A fact has one vector, that of the model in use: it follows after the switch.
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
