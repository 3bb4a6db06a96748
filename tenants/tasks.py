"""Celery tasks: one claims and does jobs, one wakes workers for due jobs, one mails links."""

import logging
import threading
import time
from importlib import import_module
from uuid import UUID

from celery import Task, current_app, shared_task
from celery.exceptions import Ignore
from django.conf import settings
from django.contrib.auth.forms import PasswordResetForm
from django.utils import translation
from structlog.contextvars import bound_contextvars

from tenants import jobs
from tenants.context import public_scope, release_connections, tenant_scope
from tenants.jobs import KINDS
from tenants.limits.fair_shares import FairShares
from tenants.once import Once
from tenants.outages import OUTAGES, outage_reason
from tenants.servers import MAIN
from tenants.serving import TenantTask, require_serving

logger = logging.getLogger(__name__)

# Set when this process is about to stop: its threads claim no further job.
_is_stopping = threading.Event()
# The start of each thread's job, by time.monotonic().
_begun: dict[int, float] = {}


class Slots:
    """The running jobs of one queue in this process."""

    def __init__(self, queue: str) -> None:
        self.shares = FairShares(*settings.JOB_SLOTS.get(queue, (1, 0)))
        self._claiming = threading.Lock()

    def claim(self, kind: jobs.JobKind, server: str) -> jobs.Claim | None:
        """Claim a job, and take a slot for its tenant; return None if there is no job or no slot.

        One thread at a time, so that a claim sees the slots that the one before has taken. No
        thread waits for its turn with a database connection: the thread before may wait for that
        connection.
        """
        with release_connections(), self._claiming:
            if _is_stopping.is_set() or self.shares.is_full():
                return None
            claimed = jobs.claim(kind, server, exclude=self.shares.tenants_at_limit())
            if claimed is not None:
                self.shares.enter(claimed.tenant_id)
            return claimed


@Once
def slots(queue: str) -> Slots:
    """Return the slots of this process for jobs of a queue."""
    return Slots(queue)


@shared_task(name=jobs.WORK)
def work(kind: str, server: str = MAIN, is_swept: bool = False) -> None:
    """Do jobs of this kind on a server, one after the other, until none can be claimed.

    A tenant that has used its share of slots is skipped. The thread that finishes a job of the
    tenant claims the next one, so that a free slot is filled without a message.

    Args:
        kind: name of the JobKind.
        server: of the tenants.
        is_swept: wake another worker for each claimed job.
    """
    task = current_app.tasks[KINDS[kind].task]
    of_queue = slots(KINDS[kind].queue)
    until = time.monotonic() + settings.TASK_TIME_LIMIT
    try:
        # Ends: when no job can be claimed; after TASK_TIME_LIMIT another worker continues.
        while (claimed := of_queue.claim(KINDS[kind], server)) is not None:
            _begun[threading.get_ident()] = time.monotonic()
            try:
                if is_swept:
                    KINDS[kind].wake(server, is_swept=True)
                _do(task, claimed)
            finally:
                del _begun[threading.get_ident()]
                of_queue.shares.leave(claimed.tenant_id)
            if time.monotonic() > until:
                KINDS[kind].wake(server)
                return
    except OUTAGES as error:
        # The job stays queued. The traceback of an outage does not help.
        logger.warning("task %s waits: %s", task.name, outage_reason(error))
        raise Ignore from error


def _do(task: Task, claimed: jobs.Claim) -> None:
    named = bound_contextvars(task_name=task.name)  # the name of the task in log lines
    with named, tenant_scope(claimed.tenant_id, pinned=True):
        task.run(str(claimed.tenant_id), str(claimed.key))


@shared_task
def sweep() -> int:
    """Wake workers for due jobs whose task was lost, or whose worker died."""
    try:
        return jobs.sweep()
    except OUTAGES as error:
        logger.warning("the sweep waits: %s", outage_reason(error))
        raise Ignore from error


def stop_claiming() -> None:
    """Keep the threads of this process from claiming further jobs."""
    _is_stopping.set()


def overdue_jobs(seconds: float) -> int:
    """Return the number of this process's threads whose job runs for longer than this."""
    since = time.monotonic() - seconds
    return sum(begun < since for begun in list(_begun.values()))


@shared_task(base=TenantTask, name="tenants.tasks.write_export")
def write_export(tenant_id: str, export_id: str) -> None:
    """Write the file of a list's export. Safe to run twice, also concurrently."""
    import_module(settings.ROOT_URLCONF)  # it registers the lists
    from tenants.admin.exports import write_file

    write_file(UUID(export_id))


@shared_task(name="tenants.tasks.send_password_links")
def send_password_links(
    tenant_id: str | None, email: str, host: str, is_secure: bool, language: str = "en"
) -> None:
    """Mail a link to each person of a tenant, or to each operator, who has this address."""
    if tenant_id is not None:
        with public_scope():
            require_serving(UUID(tenant_id))
    scope = tenant_scope(UUID(tenant_id)) if tenant_id else public_scope()
    with scope, translation.override(language):
        form = PasswordResetForm({"email": email})
        if form.is_valid() and settings.EMAIL_HOST:
            form.save(
                domain_override=host,
                use_https=is_secure,
                from_email=settings.EMAIL_FROM,
                subject_template_name="konstruct/password_reset_subject.txt",
                email_template_name="konstruct/password_reset_mail.txt",
            )
