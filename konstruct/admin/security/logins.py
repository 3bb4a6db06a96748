"""Logins: the people who are logged in to the admin, and ending their sessions."""

from typing import Final

from django.contrib import messages
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext

from konstruct.admin.access import log_access, log_row_access
from konstruct.admin.security.team import CHANGE, may_change
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action

# Sessions that are read, those that end last first. The user of one is in its data.
MAX_SESSIONS: Final = 2_000


@tenant_site.page("logins/", name="logins", permission="auth.view_user")
def logins(request: HttpRequest) -> HttpResponseBase:
    """List the sessions of the team by person."""
    log_access(request, Action.LIST, "logins")
    sessions: dict[str, list[Session]] = {}
    for session in _sessions():
        sessions.setdefault(_user_id(session), []).append(session)
    people = User.objects.filter(pk__in=[pk for pk in sessions if pk]).order_by("username")
    return tenant_site.render(
        request,
        "konstruct/logins.html",
        title=gettext("Logins"),
        rows=[
            (
                person,
                len(sessions[str(person.pk)]),
                sessions[str(person.pk)][0].expire_date,
                request.user.has_perm(CHANGE) and may_change(request, person),
            )
            for person in people
        ],
    )


@tenant_site.post_page("logins/<int:user_id>/end/", name="end_logins", permission=CHANGE)
def end(request: HttpRequest, user_id: int) -> HttpResponseBase:
    """End all sessions of a person."""
    person = get_object_or_404(User, pk=user_id)
    if not may_change(request, person):
        raise PermissionDenied
    ended = [session.pk for session in _sessions() if _user_id(session) == str(person.pk)]
    with transaction.atomic():
        log_row_access(request, Action.EDIT, person, ended_sessions=len(ended))
        Session.objects.filter(pk__in=ended).delete()
    messages.success(request, gettext("%(name)s is logged out.") % {"name": person})
    return redirect("admin:logins")


def _sessions() -> list[Session]:
    rows = Session.objects.filter(expire_date__gt=timezone.now())
    return list(rows.order_by("-expire_date")[:MAX_SESSIONS])


def _user_id(session: Session) -> str:
    return str(session.get_decoded().get(SESSION_KEY, ""))
