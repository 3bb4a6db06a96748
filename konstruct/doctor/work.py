"""Checks of waiting work: tenants, jobs and erasures."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db.models import Max, Q
from django.db.models.functions import Now

from konstruct.doctor.answers import Finding, ok, rate, warning, wrong
from konstruct.doctor.machine import is_allowed_host
from konstruct.isolation.catalogue import shorten
from konstruct.metrics import read_jobs
from konstruct.orchestrator.identities.erasure_requests import ERASURES, MESSAGE_ERASURES
from konstruct.orchestrator.replies.queue import REPLIES
from tenants import journal
from tenants.audit.models import RETENTION
from tenants.audit.tombstones import TOMBSTONES
from tenants.models import Domain, Tenant, WorkspaceClaim
from tenants.schemas.migration_state import is_fitting

# Limits for the waiting time of the oldest job, as in deploy/prometheus/alerts.yml: a page there is
# `wrong` here, a ticket is a `warning`.
LATE_REPLY_SECONDS: Final = 60
LATE_JOB_SECONDS: Final = 900
LATE_ERASURE_SECONDS: Final = 3600
START_WORKERS: Final = "Check that the worker of its queue runs, or start more workers."
UNFINISHED: Final = timedelta(minutes=10)
BACKUP_AGE: Final = timedelta(hours=26)


def check_tenants() -> Iterator[Finding]:
    """Look for tenants that are not served though they should be, in five statements."""
    findings = []
    behind = Tenant.objects.provisioned().exclude(is_fitting()).values_list("slug", flat=True)
    if slugs := list(behind.order_by("slug")):
        text = f"{len(slugs)} tenants lack migrations and get 503: {shorten(slugs)}."
        findings.append(wrong(text, "Run manage.py migrate."))
    unfinished = Q(provisioning_failed_at__isnull=False) | Q(created_at__lt=Now() - UNFINISHED)
    provisioning = Tenant.objects.filter(unfinished, state=Tenant.State.PROVISIONING)
    if slugs := list(provisioning.values_list("slug", flat=True)):
        text = f"{len(slugs)} tenants are registered and not set up: {shorten(slugs)}."
        remedy = "Run manage.py create_tenant SLUG again; the operators' admin shows the error."
        findings.append(warning(text, remedy))
    if slugs := list(Tenant.objects.exclude(moving_to="").values_list("slug", flat=True)):
        text = f"{len(slugs)} tenants are held by a move: {shorten(slugs)}."
        findings.append(warning(text, "Run manage.py move_tenant again if no move is running."))
    restoring = Tenant.objects.filter(state=Tenant.State.RESTORING)
    if slugs := list(restoring.values_list("slug", flat=True)):
        text = f"{len(slugs)} tenants are being restored from a backup: {shorten(slugs)}."
        findings.append(warning(text, "Run manage.py restore again if no restore is running."))
    domains = Domain.objects.filter(tenant__state=Tenant.State.ACTIVE).order_by("domain")
    refused = [
        name for name in domains.values_list("domain", flat=True) if not is_allowed_host(name)
    ]
    if refused:
        text = f"ALLOWED_HOSTS refuses {len(refused)} domains of tenants: {shorten(refused)}."
        findings.append(wrong(text, "Add them to ALLOWED_HOSTS, or remove the domains."))
    states = Counter(Tenant.objects.values_list("state", flat=True))
    numbers = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
    yield from findings or [ok(f"Tenants: {numbers or 'none yet'}.")]


def check_slack() -> Iterator[Finding]:
    """Whether Slack is configured where tenants have connected workspaces."""
    number = WorkspaceClaim.objects.filter(channel="slack").count()
    if number and not settings.SLACK_SIGNING_SECRET:
        text = f"{number} workspaces are connected, and every request of Slack's is refused."
        yield wrong(text, "Set SLACK_SIGNING_SECRET (docs/slack.md).")
    else:
        yield ok(f"{number} workspaces are connected.")


def check_queues(server: str) -> Iterator[Finding]:
    """Look at the jobs of a server: how many wait, for how long, and how many are given up."""
    jobs, backlogs = read_jobs(server)
    erasures = (ERASURES.name, MESSAGE_ERASURES.name, TOMBSTONES.name)
    for kind, (waiting, in_work, oldest) in sorted(jobs.items()):
        text = (
            f"Jobs of the kind {kind}: {waiting} wait, the oldest for {oldest:.0f} s, and"
            f" {in_work} are in work."
        )
        if kind in erasures:
            remedy = "Check that the owner worker runs: people have requested these erasures."
            yield rate(oldest, text, remedy, warn=LATE_JOB_SECONDS, bad=LATE_ERASURE_SECONDS)
        elif kind == REPLIES.name:
            yield rate(oldest, text, START_WORKERS, warn=LATE_REPLY_SECONDS, bad=LATE_REPLY_SECONDS)
        elif kind == RETENTION.name:  # its jobs wait until rows are old enough
            yield ok(text)
        else:
            yield rate(oldest, text, START_WORKERS, warn=LATE_JOB_SECONDS, bad=float("inf"))
    if given_up := sum(backlog.failed for backlog in backlogs.values()):
        tenants = sum(backlog.failed > 0 for backlog in backlogs.values())
        text = f"{given_up} jobs of {tenants} tenants are given up."
        yield warning(text, "Retry or discard them in the tenants' admin, under Failed jobs.")
    elif not jobs:
        yield ok("No job waits.")


def check_deletions() -> Iterator[Finding]:
    """Look for tenants past their day of deletion."""
    late = Tenant.objects.filter(delete_at__lt=Now() - timedelta(seconds=LATE_ERASURE_SECONDS))
    if slugs := list(late.values_list("slug", flat=True)):
        text = f"{len(slugs)} tenants should have been deleted: {shorten(slugs)}."
        yield wrong(text, "Check that the owner worker runs, and read its log.")
    else:
        yield ok("No deletion of a tenant is late.")


def check_backups() -> Iterator[Finding]:
    """Look for tenants without a recent backup, and for the journal of erasures."""
    tenants = Tenant.objects.provisioned()
    remedy = "Run manage.py backup every night (docs/backup.md)."
    old = tenants.exclude(backed_up_at__gt=Now() - BACKUP_AGE).values_list("slug", flat=True)
    newest = tenants.aggregate(newest=Max("backed_up_at"))["newest"]
    if newest is None:
        yield warning("No backup is recorded.", remedy)
    elif slugs := list(old.order_by("slug")):
        text = f"{len(slugs)} tenants have no backup of the last 26 hours: {shorten(slugs)}."
        yield warning(text, remedy)
    else:
        yield ok(f"Each tenant has a backup; the last one is of {newest:%Y-%m-%d %H:%M} UTC.")
    if not journal.is_enabled():
        text = (
            "ERASURE_JOURNAL is not set: a restored backup brings back people who were erased "
            "since then."
        )
        yield warning(text, "Keep a journal of erasures (docs/backup.md).")
        return
    try:
        journal.position()
    except journal.JournalUnavailable as error:
        yield warning(f"{error}.", "Mount its disk, or make the file (docs/backup.md).")
