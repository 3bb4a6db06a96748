"""Logins: the people who are logged in to the admin."""

from collections import defaultdict
from datetime import datetime
from typing import Final

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext

from konstruct.admin.access import log_access
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action

# Sessions that are read, those that end last first. The user of one is in its data.
MAX_SESSIONS: Final = 2_000


@tenant_site.page("logins/", name="logins", permission="auth.view_user")
def logins(request: HttpRequest) -> HttpResponseBase:
    """List the sessions of the team by person."""
    log_access(request, Action.LIST, "logins")
    current = Session.objects.filter(expire_date__gt=timezone.now()).order_by("-expire_date")
    sessions: dict[str | None, list[datetime]] = defaultdict(list)
    for session in current[:MAX_SESSIONS]:
        sessions[session.get_decoded().get(SESSION_KEY)].append(session.expire_date)
    people = User.objects.filter(pk__in=[pk for pk in sessions if pk]).order_by("username")
    return tenant_site.render(
        request,
        "konstruct/logins.html",
        title=gettext("Logins"),
        rows=[(person, sessions[str(person.pk)]) for person in people],
    )
