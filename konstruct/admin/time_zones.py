"""The time zone of a page: the user's own, or the tenant's, or the browser's, or UTC."""

from collections.abc import Callable
from functools import cache
from typing import Any, Final
from urllib.parse import unquote
from zoneinfo import ZoneInfo, available_timezones

from django import forms
from django.contrib import messages
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext

from konstruct.admin.access import log_access
from konstruct.admin.pages import PageForm
from konstruct.orchestrator.models import TeamTimeZone
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action

COOKIE: Final = "time_zone"
# The permission to set the time zone of those who have chosen none.
MANAGE: Final = "auth.change_user"
_SESSION_KEY: Final = "time_zone"


@cache
def known_zones() -> frozenset[str]:
    """Return the names of all time zones."""
    return frozenset(available_timezones() - {"localtime"})


class TimeZoneMiddleware:
    """Shows the times of a tenant's admin in the time zone of its user."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        name = _zone_name(request)
        if not name:
            return self.get_response(request)
        with timezone.override(ZoneInfo(name)):
            return self.get_response(request)


def _zone_name(request: HttpRequest) -> str:
    """Return the name of the time zone; empty for UTC and outside of a tenant's admin."""
    is_tenant_admin = (
        request.path.startswith("/admin/") and getattr(request, "tenant", None) is not None
    )
    if not is_tenant_admin or not request.user.is_authenticated:
        return ""
    chosen = request.session.get(_SESSION_KEY)
    if chosen is None:
        # Once a session.
        zones = _chosen_zones(request.user.pk)
        first = zones.order_by(F("member_id").asc(nulls_last=True)).first()
        chosen = request.session[_SESSION_KEY] = first.name if first else ""
    name = chosen or unquote(request.COOKIES.get(COOKIE, ""))
    return name if name in known_zones() else ""


def _chosen_zones(member_id: Any) -> QuerySet[TeamTimeZone]:
    """Return the time zone of a member and that of the team, as far as they are chosen."""
    return TeamTimeZone.objects.filter(Q(member_id=member_id) | Q(member_id=None))


class ZoneForm(PageForm):
    """The choice of a time zone; empty: none."""

    zone = forms.ChoiceField(required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(name, name) for name in sorted(known_zones())]
        self.fields["zone"].choices = [("", gettext("None")), *choices]  # type: ignore[attr-defined]


@tenant_site.page("time-zone/", name="time_zone", permission="memory.view_message")
def time_zone(request: HttpRequest) -> HttpResponseBase:
    """Choose the time zone of one's own pages, or of all who have chosen none."""
    for_all = request.POST.get("for") == "all" and request.user.has_perm(MANAGE)
    member_id = None if for_all else request.user.pk
    form = ZoneForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        name = form.cleaned_data["zone"]
        with transaction.atomic():
            log_access(request, Action.EDIT, "time zone", subject_id=member_id, zone=name)
            if name:
                TeamTimeZone.objects.update_or_create(member_id=member_id, defaults={"name": name})
            else:
                TeamTimeZone.objects.filter(member_id=member_id).delete()
        request.session.pop(_SESSION_KEY, None)
        text = gettext("Times are shown in %(value)s.")
        messages.success(request, text % {"value": name or gettext("the browser's time zone")})
        return redirect("admin:time_zone")
    log_access(request, Action.VIEW, "time zone")
    zones = dict(_chosen_zones(request.user.pk).values_list("member_id", "name"))
    targets = [("me", gettext("Yours"), request.user.pk)]
    if request.user.has_perm(MANAGE):
        targets.append(("all", gettext("Default for members without a choice"), None))
    return tenant_site.render(
        request,
        "konstruct/time_zone.html",
        title=gettext("Time zone"),
        forms=[
            (target, label, ZoneForm(initial={"zone": zones.get(pk, "")}, auto_id=f"{target}_%s"))
            for target, label, pk in targets
        ],
    )
