"""Table of files with history of other systems, which a job previews and imports."""

from typing import Final

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models.functions import Now

from tenants import fields, transaction
from tenants.audit.models import ActorKind
from tenants.jobs import JobKind
from tenants.models import TenantModel
from tenants.personal_data import OF_EVERY_PERSON, PersonalData

# Previews or imports a file, and deletes it after a day. The key is the id of the import.
HISTORY_IMPORTS: Final = JobKind(
    name="history_import",
    do="konstruct.orchestrator.history_import.uploads.run",
    queue="extractions",
    max_attempts=3,
)


class HistoryImportQuerySet(models.QuerySet["HistoryImport"]):
    """Imports of the tenant."""

    def remove(self) -> None:
        """Delete imports with their jobs. The jobs are first, as in a batch of an import."""
        with transaction.atomic():
            keys = list(self.values_list("pk", flat=True))
            HISTORY_IMPORTS.finish_many(keys)
            HistoryImport.objects.filter(pk__in=keys).delete()


class HistoryImport(TenantModel):
    """A file with history of another system: its options, its preview and its import.

    Each erasure removes all of them, because a file may hold data of the person.
    """

    id = fields.random_id()
    created_at = models.DateTimeField(db_default=Now(), help_text="When the file was sent.")
    file_name = models.TextField("file", help_text="Name of the file.")
    content = models.BinaryField(help_text="The file, until it is imported.")
    options = fields.json_object(help_text="How it is read, and who is who in it.")
    is_dry_run = fields.flag("preview", default=False, help_text="Whether nothing is stored.")
    requested_by = models.TextField(help_text="Name of the person or the API key.")
    actor_kind = models.TextField(choices=ActorKind, editable=False, help_text="Kind of the actor.")
    actor_id = models.TextField(editable=False, help_text="Id of the actor.")
    report = models.JSONField(
        null=True,
        blank=True,
        encoder=DjangoJSONEncoder,
        help_text="Conversations, authors, and what is left out.",
    )
    finished_at = fields.optional_time(help_text="When the preview or the import ended.")
    error = fields.optional_text(help_text="Why it failed.")

    unlogged_fields = frozenset({"content", "options", "report", "error"})

    objects = HistoryImportQuerySet.as_manager()

    personal_data = PersonalData(where=OF_EVERY_PERSON)

    class Meta:
        verbose_name = "history import"

    def __str__(self) -> str:
        return self.file_name

    @property
    def state(self) -> str:
        """One of waiting, previewed, imported and failed."""
        if self.finished_at is None:
            return "waiting"
        return "failed" if self.error else "previewed" if self.is_dry_run else "imported"
