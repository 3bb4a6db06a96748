"""People: the list of end users, and the export and erasure of one."""

from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import content_disposition_header, urlencode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from konstruct.admin.access import actor_of, date_range_query, export_page, log_access
from konstruct.admin.lists import agent_names
from konstruct.admin.pages import as_user_id, show_outcome
from konstruct.admin.people.erasures import ERASE, REQUESTED, ErasureForm
from konstruct.admin.people.identities import VIEW as VIEW_ACCOUNTS
from konstruct.admin.people.person import VIEW
from konstruct.admin.people.person_export import PersonExport
from konstruct.api.http.problems import current_request_id
from konstruct.orchestrator.identities.channel_identities import (
    is_known,
    linked_ids,
    users_of_accounts,
)
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from memory.browse.people import UserSummary, list_users, similar_user_ids
from memory.ids import as_code_points
from tenants.admin.exports import keep_locale
from tenants.admin.list_tools import date_range, list_tools
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action, ErasureRequest

PER_PAGE = 50
EXPORT = "audit.export_person"
RECEIPT = "audit.view_erasurerequest"


@tenant_site.page("people/", name="people", permission=VIEW)
def people_list(request: HttpRequest) -> HttpResponseBase:
    """Users in the order of their ids, found by names, ids and accounts."""
    search_text = as_user_id(request.GET.get("q"))
    after = request.GET.get("after", "").replace("\0", "")
    found = _matching_people(request, beyond=after, limit=PER_PAGE + 1)
    action, shown = Action.SEARCH if search_text else Action.LIST, found[:PER_PAGE]
    log_access(request, action, "people", people=[person.user_id for person in shown])
    if search_text and not found and ErasureRequest.objects.about(search_text).exists():
        return redirect(reverse("admin:person", query={"user": search_text}))
    days = date_range_query(request)
    first = {"q": search_text, **days}
    has_more = len(found) > PER_PAGE
    return tenant_site.render(
        request,
        "konstruct/people.html",
        title=gettext("People"),
        people=[(person, urlencode({"user": person.user_id})) for person in found[:PER_PAGE]],
        q=search_text,
        after=after,
        first=urlencode(first),
        following=urlencode({**first, "after": found[PER_PAGE - 1].user_id}) if has_more else "",
        days=days,
        list_tools=list_tools(request, paging=["after"]),
    )


def _matching_people(request: HttpRequest, *, beyond: str, limit: int) -> list[UserSummary]:
    """Return the people of the request's search and dates, in the order of their ids."""
    search_text = as_user_id(request.GET.get("q"))
    accounts = (
        users_of_accounts(search_text)
        if search_text and request.user.has_perm(VIEW_ACCOUNTS)
        else []
    )
    since, until = date_range(request.GET)
    return list_users(
        after=beyond,
        containing=search_text,
        also_ids=accounts,
        since=since,
        until=until,
        limit=limit,
    )


def _export_rows(request: HttpRequest) -> Iterator[tuple[Any, ...]]:
    """Yield the people in the order of their ids."""
    after = ""
    # Ends: each batch begins after the one before, and one that is not full is the last.
    while True:
        found = _matching_people(request, beyond=after, limit=PEOPLE_PER_BATCH)
        for person in found:
            columns = (getattr(person, name) for name in EXPORT_COLUMNS)
            yield (*columns, len(person.messages_by_agent))
        if len(found) < PEOPLE_PER_BATCH:
            return
        after = found[-1].user_id


# Each person takes some probes of indexes.
PEOPLE_PER_BATCH = 200
EXPORT_COLUMNS = ["user_id", "name", "names", "channel", "messages", "facts", "first_at", "last_at"]
export_page("people", permission=VIEW, columns=[*EXPORT_COLUMNS, "agents"], rows=_export_rows)


@tenant_site.page("people/person/export/", name="export_person", permission=EXPORT)
def export(request: HttpRequest) -> HttpResponseBase:
    """Send all data of a person, with all their ids: as JSON, or as a page to print."""
    user_id = as_user_id(request.GET.get("user"))
    user_ids = linked_ids(user_id)
    if request.method != "POST" or not user_id or not is_known(user_ids):
        return redirect(reverse("admin:person", query={"user": user_id}))
    as_page = request.POST.get("as") == "page"
    kind = "html" if as_page else "json"
    log_access(request, Action.EXPORT, "person", user_id=user_id, format=kind)
    exported = PersonExport(user_ids, agent_names())
    if as_page:
        tenant = request.tenant  # type: ignore[attr-defined]  # set by TenantMiddleware
        pieces = exported.as_page(tenant=tenant, user_ids=user_ids, made_at=timezone.now())
        return StreamingHttpResponse(keep_locale(pieces))
    disposition = content_disposition_header(True, f"{user_id[:80]}.json")
    return StreamingHttpResponse(
        keep_locale(exported.as_json()),
        content_type="application/json",
        headers={"Content-Disposition": disposition or "attachment"},
    )


class PersonErasureForm(ErasureForm):
    """The reason, and the id of the person as a confirmation."""

    typed = forms.CharField(
        label=_("The user’s id, to confirm"),
        strip=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, *args: Any, user_id: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user_id = user_id

    def clean_typed(self) -> str:
        """Refuse another id."""
        typed: str = self.cleaned_data["typed"]
        if typed != self._user_id:
            raise ValidationError(gettext("This is not the id of the user."))
        return typed


@tenant_site.page("people/person/erase/", name="erase_person", permission=ERASE)
def erase(request: HttpRequest) -> HttpResponseBase:
    """Request the erasure of a user, after the id was typed as a confirmation."""
    user_id = as_user_id(request.GET.get("user"))
    if not user_id or not is_known([user_id]):
        messages.warning(
            request, gettext("Nothing is known of %(user_id)r.") % {"user_id": user_id}
        )
        return redirect("admin:people")
    form = PersonErasureForm(request.POST if request.method == "POST" else None, user_id=user_id)
    if request.method == "POST" and form.is_valid():
        with show_outcome(request, str(REQUESTED), form=form, field="reason"):
            erasure = request_erasure(
                user_id,
                by=actor_of(request),
                reason=form.cleaned_data["reason"],
                request_id=current_request_id(),
            )
            if request.user.has_perm(RECEIPT):
                return redirect("admin:erasure_receipt", erasure.pk)
            return redirect(reverse("admin:person", query={"user": user_id}))
    return tenant_site.render(
        request,
        "konstruct/erase_person.html",
        title=gettext("Request erasure"),
        user_id=user_id,
        query=urlencode({"user": user_id}),
        linked=[(other, urlencode({"user": other})) for other in linked_ids(user_id)[1:]],
        spelled=as_code_points(user_id) and f" ({as_code_points(user_id)})",
        alike=[
            (other, as_code_points(other), urlencode({"user": other}))
            for other in similar_user_ids(user_id)
        ],
        form=form,
    )
