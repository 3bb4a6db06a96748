"""The start page of the operators' site: tenants that need attention."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext, ngettext

from tenants.admin.badges import format_number
from tenants.admin.figures import backlogs, tenants_with_most
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
    behind = tenants.provisioned().exclude(is_fitting())
    failed = tenants.exclude(provisioning_error="")
    leaving = tenants.filter(deletion_asked_at__isnull=False).order_by("deletion_asked_at")
    found, down = backlogs()
    now = timezone.now()
    oldest = tenants_with_most(
        found, lambda each: each.oldest and (now - each.oldest).total_seconds(), MAX_NAMED_TENANTS
    )
    given_up = tenants_with_most(found, lambda each: each.failed, MAX_NAMED_TENANTS)
    named = {
        tenant.pk: tenant for tenant in tenants.filter(pk__in={*oldest, *given_up}).only("slug")
    }
    listed = reverse("admin:tenants_tenant_changelist")
    waiting = sum(backlog.waiting for backlog in found.values())
    cards = [
        _card(
            gettext("To be migrated"),
            behind,
            f"{listed}?schema=behind",
            lambda tenant: tenant.get_state_display(),
        ),
        _card(
            gettext("Could not be set up or migrated"),
            failed,
            f"{listed}?schema=failed",
            lambda tenant: tenant.provisioning_error[:120],
        ),
        Card(
            gettext("Waiting longest"),
            ngettext("%(waiting)s job waits", "%(waiting)s jobs wait", waiting)
            % {"waiting": format_number(waiting)}
            if waiting
            else "",
            listed,
            [
                _line(
                    named[pk],
                    gettext("%(timesince)s, %(waiting)s wait")
                    % {"timesince": timesince(since), "waiting": format_number(found[pk].waiting)},
                )
                for pk in oldest
                if pk in named and (since := found[pk].oldest)
            ],
        ),
        Card(
            gettext("Given up"),
            _job_count(sum(backlog.failed for backlog in found.values())) if given_up else "",
            listed,
            [_line(named[pk], _job_count(found[pk].failed)) for pk in given_up if pk in named],
        ),
        _card(
            gettext("At a limit of a quota"),
            tenants.serving().with_reached_quotas(),
            f"{listed}?quota=reached",
            reached_text,
        ),
        _card(
            gettext("To be deleted"), leaving, f"{listed}?state__exact=suspended", _deletion_note
        ),
    ]
    states = tenants.aggregate(
        all=Count("pk"), active=Count("pk", filter=Q(state=Tenant.State.ACTIVE))
    )
    return {"cards": [card for card in cards if card.lines], "down": down, "tenants": states}


def _job_count(number: int) -> str:
    return ngettext("%(number)s job", "%(number)s jobs", number) % {"number": format_number(number)}


def _card(title: str, tenants: QuerySet[Tenant], link: str, note: Any) -> Card:
    shown = list(tenants[: MAX_NAMED_TENANTS + 1])
    count = f"{len(shown)}" if len(shown) <= MAX_NAMED_TENANTS else format_number(tenants.count())
    return Card(
        title, count, link, [_line(tenant, note(tenant)) for tenant in shown[:MAX_NAMED_TENANTS]]
    )


def _line(tenant: Tenant, note: str) -> tuple[str, str, str]:
    return tenant.slug, note, reverse("admin:tenants_tenant_change", args=[tenant.pk])


def _deletion_note(tenant: Tenant) -> str:
    if tenant.delete_at is None:
        return gettext("waits for the owner’s worker")
    is_due = tenant.delete_at <= timezone.now()
    return (
        gettext("is being deleted")
        if is_due
        else gettext("in %(timeuntil)s") % {"timeuntil": timeuntil(tenant.delete_at)}
    )
