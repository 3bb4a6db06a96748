"""The start page of the operators' site: tenants that need attention."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext, ngettext

from tenants.admin.columns import format_number
from tenants.admin.figures import Backlog, backlogs, tenants_with_most
from tenants.admin.quotas import reached_text
from tenants.models import Tenant
from tenants.schemas.migration_state import is_fitting

# Tenants that a card lists. Its link leads to all of them.
MAX_NAMED_TENANTS = 5


@dataclass(frozen=True, slots=True)
class Card:
    """A kind of problem, with the tenants that have it."""

    title: str
    count: str
    link: str
    lines: list[tuple[str, str, str]]
    """Name, note and address of a tenant."""


def attention_context(request: HttpRequest) -> dict[str, Any]:
    """Return the cards and the number of tenants, for users who may see tenants."""
    if not request.user.has_perm("tenants.view_tenant"):
        return {}
    tenants = Tenant.objects.all()
    tenant_list = reverse("admin:tenants_tenant_changelist")
    backlog_of_tenants, down = backlogs()
    cards = [
        _card(
            gettext("To be migrated"),
            tenants.provisioned().exclude(is_fitting()),
            f"{tenant_list}?schema=behind",
            lambda tenant: tenant.get_state_display(),
        ),
        _card(
            gettext("Could not be set up or migrated"),
            tenants.exclude(provisioning_error=""),
            f"{tenant_list}?schema=failed",
            lambda tenant: tenant.provisioning_error[:120],
        ),
        *_job_cards(backlog_of_tenants, tenant_list),
        _card(
            gettext("At a limit of a quota"),
            tenants.serving().with_reached_quotas(),
            f"{tenant_list}?quota=reached",
            reached_text,
        ),
        _card(
            gettext("To be deleted"),
            tenants.filter(deletion_asked_at__isnull=False).order_by("deletion_asked_at"),
            f"{tenant_list}?state__exact=suspended",
            _deletion_note,
        ),
    ]
    states = tenants.aggregate(
        all=Count("pk"), active=Count("pk", filter=Q(state=Tenant.State.ACTIVE))
    )
    return {"cards": [card for card in cards if card.lines], "down": down, "tenants": states}


def _job_cards(backlog_of_tenants: dict[UUID, Backlog], link: str) -> list[Card]:
    """Return the cards of the tenants whose jobs wait longest, and of those with failed jobs."""
    now = timezone.now()
    oldest = tenants_with_most(
        backlog_of_tenants,
        lambda backlog: backlog.oldest and (now - backlog.oldest).total_seconds(),
        MAX_NAMED_TENANTS,
    )
    failed = tenants_with_most(
        backlog_of_tenants, lambda backlog: backlog.failed, MAX_NAMED_TENANTS
    )
    tenants = Tenant.objects.only("slug").in_bulk({*oldest, *failed})
    waiting = sum(backlog.waiting for backlog in backlog_of_tenants.values())
    waiting_jobs = ngettext("%(waiting)s job waits", "%(waiting)s jobs wait", waiting)
    return [
        Card(
            gettext("Waiting longest"),
            waiting_jobs % {"waiting": format_number(waiting)} if waiting else "",
            link,
            [
                _line(tenants[pk], _waiting_note(backlog_of_tenants[pk].waiting, since))
                for pk in oldest
                if pk in tenants and (since := backlog_of_tenants[pk].oldest)
            ],
        ),
        Card(
            gettext("Given up"),
            _job_count(sum(backlog.failed for backlog in backlog_of_tenants.values()))
            if failed
            else "",
            link,
            [
                _line(tenants[pk], _job_count(backlog_of_tenants[pk].failed))
                for pk in failed
                if pk in tenants
            ],
        ),
    ]


def _waiting_note(waiting: int, since: datetime) -> str:
    return gettext("%(timesince)s, %(waiting)s wait") % {
        "timesince": timesince(since),
        "waiting": format_number(waiting),
    }


def _job_count(number: int) -> str:
    return ngettext("%(number)s job", "%(number)s jobs", number) % {"number": format_number(number)}


def _card(title: str, tenants: QuerySet[Tenant], link: str, note: Any) -> Card:
    first = list(tenants[: MAX_NAMED_TENANTS + 1])
    count = f"{len(first)}" if len(first) <= MAX_NAMED_TENANTS else format_number(tenants.count())
    return Card(
        title, count, link, [_line(tenant, note(tenant)) for tenant in first[:MAX_NAMED_TENANTS]]
    )


def _line(tenant: Tenant, note: str) -> tuple[str, str, str]:
    return tenant.slug, note, reverse("admin:tenants_tenant_change", args=[tenant.pk])


def _deletion_note(tenant: Tenant) -> str:
    if tenant.delete_at is None:
        return gettext("waits for the owner’s worker")
    if tenant.delete_at <= timezone.now():
        return gettext("is being deleted")
    return gettext("in %(timeuntil)s") % {"timeuntil": timeuntil(tenant.delete_at)}
