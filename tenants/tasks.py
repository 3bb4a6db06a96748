"""Celery tasks: one claims and does jobs, one wakes workers for due jobs, one mails links."""

import logging
from importlib import import_module
from uuid import UUID

from celery import shared_task
from celery.exceptions import Ignore
from django.conf import settings
from django.contrib.auth.forms import PasswordResetForm
from django.utils import translation

from tenants import jobs, outages, servers, serving
from tenants.context import public_scope, tenant_scope

logger = logging.getLogger(__name__)


@shared_task(name=jobs.WORK)
def work(kind: str, server: str = servers.MAIN, is_swept: bool = False) -> None:
    """Do jobs of this kind on a server until none can be claimed, see `tenants.jobs.work`."""
    try:
        jobs.work(jobs.KINDS[kind], server, is_swept=is_swept)
    except outages.OUTAGES as error:
        # The job stays queued. The traceback of an outage does not help.
        logger.warning("the %s jobs wait: %s", kind, outages.outage_reason(error))
        raise Ignore from error


@shared_task
def sweep() -> int:
    """Wake workers for due jobs whose task was lost, or whose worker died."""
    try:
        return jobs.sweep()
    except outages.OUTAGES as error:
        logger.warning("the sweep waits: %s", outages.outage_reason(error))
        raise Ignore from error


def write_export(lease: jobs.Lease) -> None:
    """Write the file of a list's export. Safe to run twice, also concurrently."""
    import_module(settings.ROOT_URLCONF)  # it registers the lists
    from tenants.admin.exports import write_file

    write_file(lease)


@shared_task(name="tenants.tasks.send_password_links")
def send_password_links(
    tenant_id: str | None, email: str, host: str, is_secure: bool, language: str = "en"
) -> None:
    """Mail a link to each person of a tenant, or to each operator, who has this address."""
    if tenant_id is not None:
        with public_scope():
            serving.require_serving(UUID(tenant_id))
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
