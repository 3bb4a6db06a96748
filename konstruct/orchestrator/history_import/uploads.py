"""Uploaded files with history: a job previews or imports a file, and deletes it after a day."""

import time
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Now
from django.utils import timezone

from konstruct.orchestrator import usage
from konstruct.orchestrator.exceptions import ImportRefused, WrongState
from konstruct.orchestrator.history_import import files, importing
from konstruct.orchestrator.models import HISTORY_IMPORTS, HistoryImport
from tenants import context, jobs
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import Action, ActorKind
from tenants.audit.people import PersonBeingErased, hold_people
from tenants.exceptions import reason_of
from tenants.limits.quotas import QuotaExceeded

# How long a file that is not imported, and a report, are kept.
KEPT: Final = timedelta(days=1)
MAX_FILE_BYTES: Final = 2_400_000
# The lease of a job ends after TASK_TIME_LIMIT.
MAX_SECONDS: Final = settings.TASK_TIME_LIMIT * 0.8
# Files of a tenant that are not imported yet.
MAX_FILES: Final = 50


def request_import(
    content: bytes, file_name: str, options: importing.Options, *, by: Actor, is_dry_run: bool
) -> HistoryImport:
    """Store a file, and enqueue its import or its preview. Call it in a transaction.

    Raises:
        ImportRefused: the file is too large, or the tenant has too many files.
        PersonBeingErased: a user of the options is being erased.
        QuotaExceeded: the storage of the tenant is full.
    """
    if len(content) > MAX_FILE_BYTES:
        raise ImportRefused(
            f"The file has more than {MAX_FILE_BYTES:,} bytes: pack it as zip, or let an operator"
            " use manage.py import_history."
        )
    if HistoryImport.objects.exclude(content=b"").count() >= MAX_FILES:
        raise ImportRefused(f"{MAX_FILES} files wait already: import them, or wait for a day.")
    usage.require_storage()
    if not is_dry_run:
        hold_people({options.user_id, *options.people.values()} - {""})
    upload = HistoryImport.objects.create(
        file_name=file_name,
        content=content,
        options=asdict(options),
        is_dry_run=is_dry_run,
        requested_by=by.name,
        actor_kind=by.kind,
        actor_id=by.id,
    )
    HISTORY_IMPORTS.enqueue(upload.pk)
    return upload


def confirm(import_id: UUID) -> None:
    """Enqueue the import of a file whose preview is shown. Call it in a transaction.

    Raises:
        WrongState: it has no preview, or is imported or deleted.
    """
    previewed = HistoryImport.objects.filter(
        pk=import_id, is_dry_run=True, finished_at__isnull=False, error=""
    )
    if not previewed.update(is_dry_run=False, finished_at=None):
        raise WrongState("The file has no preview, or is imported already: send it again.")
    HISTORY_IMPORTS.finish(import_id)
    HISTORY_IMPORTS.enqueue(import_id)


def run(job: UUID | jobs.Lease) -> None:
    """Preview or import a file of the current tenant, or delete one that is a day old.

    After a kill another worker begins anew, and adds what is missing.
    """
    HISTORY_IMPORTS.run(job, _run, on_failure=partial(_record_failure, jobs.key_of(job)))


def _run(lease: jobs.Lease) -> None:
    stored = HistoryImport.objects.filter(pk=lease.key)
    upload = stored.first()
    if upload is None or upload.finished_at is not None:
        with lease.transaction():
            if upload and (left := upload.created_at + KEPT - timezone.now()) > timedelta(0):
                HISTORY_IMPORTS.postpone(lease.key, left)
                return
            stored.delete()
            HISTORY_IMPORTS.finish(lease.key)
        return
    actor = Actor(ActorKind(upload.actor_kind), upload.actor_id, upload.requested_by)
    is_dry_run, ends_at = upload.is_dry_run, time.monotonic() + MAX_SECONDS

    def check_time() -> None:
        if time.monotonic() > ends_at:
            raise ImportRefused(
                f"It takes more than {MAX_SECONDS / 60:.0f} minutes: divide the file, or let an"
                " operator use manage.py import_history."
            )

    def record(counts: dict[str, int]) -> None:
        # After the users are held, as an erasure does it.
        if stored.select_for_update().values_list("pk").first() is None:
            raise ImportRefused("An erasure has deleted the file: send it again.")
        check_time()
        if not is_dry_run:
            record_access(Action.IMPORT, "messages", by=actor, counts=counts)

    def finish(report: importing.Report) -> None:
        kept = {} if is_dry_run else {"content": b""}
        stored.update(report=report.document(), finished_at=Now(), **kept)
        HISTORY_IMPORTS.postpone(lease.key, KEPT)

    with files.Source.open(bytes(upload.content), upload.file_name, check_time) as source:
        importing.import_source(
            source,
            importing.Options(**upload.options),
            tenant_id=context.required_tenant_id(),
            import_id=lease.key,
            is_dry_run=is_dry_run,
            atomic=lease.transaction,
            record=record,
            finish=finish,
        )


def _record_failure(import_id: UUID, error: Exception) -> bool:
    """Let the import be tried again; after the last attempt, and if it is refused, end it."""
    is_final = isinstance(error, ImportRefused | PersonBeingErased | QuotaExceeded)
    if (
        not is_final
        and HISTORY_IMPORTS.jobs([import_id]).get().attempts < HISTORY_IMPORTS.max_attempts
    ):
        return HISTORY_IMPORTS.record_failure(import_id, error)
    HistoryImport.objects.filter(pk=import_id).update(
        error=reason_of(error), finished_at=Now(), content=b""
    )
    HISTORY_IMPORTS.postpone(import_id, KEPT)
    return True
