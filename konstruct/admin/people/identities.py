"""Identities: ids of channels, and the pages that link them to a user and unlink them."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from konstruct.admin import lists
from konstruct.admin.access import AuditedReadOnlyAdmin, actor_of, log_row_access
from konstruct.admin.pages import PageForm, UserField, show_outcome
from konstruct.orchestrator.identities.channel_identities import link, unlink
from konstruct.orchestrator.models import ChannelIdentity, HistoryMerge
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.changes import row_state
from tenants.audit.models import Action

VIEW = "orchestrator.view_channelidentity"
LINK = "orchestrator.change_channelidentity"


def linked_accounts(request: HttpRequest, user_ids: Sequence[str]) -> dict[str, Any] | None:
    """Return the identities and the open history merges of a person, for the person page.

    Returns:
        `identities` and `moves`; None if the reader may not see identities.
    """
    if not request.user.has_perm(VIEW):
        return None
    identities = ChannelIdentity.objects.filter(Q(user_id__in=user_ids) | Q(own_id__in=user_ids))
    merges = HistoryMerge.objects.open().filter(Q(user_id__in=user_ids) | Q(from_user__in=user_ids))
    return {"identities": identities[:50], "moves": merges[:50]}


class LinkedFilter(lists.ChoiceFilter):
    """Linked to a user, or not."""

    title = _("linked")
    parameter_name = "linked"
    values = {"yes": _("to a user"), "no": _("not linked")}

    def narrow(self, rows: Any, value: str) -> Any:
        return rows.filter(linked_at__isnull=value == "no")


@admin.register(ChannelIdentity, site=tenant_site)
class ChannelIdentityAdmin(AuditedReadOnlyAdmin):
    """Ids of channels, with the user that each is linked to."""

    list_display = (
        "native_id", "name", "channel", "workspace", "user_id", "linked_by", "linked_at",
        "link_action",
    )  # fmt: skip
    list_filter = (LinkedFilter, "channel")
    search_fields = ("=native_id", "=user_id", "=own_id", "name")
    ordering = ("-created_at", "id")
    fields = (
        *("channel", "workspace", "native_id", "name", "own_id", "user_id", "created_at"),
        *("linked_at", "linked_by", "link_action"),
    )

    @display(description=_("Link"))
    def link_action(self, identity: ChannelIdentity) -> SafeString:
        """A link to the page that links the identity."""
        return lists.link(gettext("Link or unlink"), "link_identity", identity.pk)


class LinkForm(PageForm):
    """The user to link to."""

    user_id = UserField(
        required=True,
        help_text=_(
            "The id or the name of a user, as shown under People. Earlier messages are moved "
            "within two minutes, and cannot be separated again."
        ),
    )
    user_id.widget.attrs |= {"class": "k-input", "autocomplete": "off"}


@tenant_site.page("identities/<uuid:identity_id>/link/", name="link_identity", permission=LINK)
def link_page(request: HttpRequest, identity_id: UUID) -> HttpResponseBase:
    """Link an identity to a user."""
    identity = get_object_or_404(ChannelIdentity, pk=identity_id)
    form = LinkForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        user_id, before = form.cleaned_data["user_id"], row_state(identity)
        success = gettext("Linked. Earlier messages are moved in a moment.")
        with show_outcome(request, success, form=form, field="user_id"), transaction.atomic():
            linked = link(identity, user_id, by=actor_of(request).name)
            log_row_access(request, Action.LINK, linked, before=before, after=row_state(linked))
        if form.is_valid():
            return redirect(reverse("admin:person", query={"user": user_id}))
    log_row_access(request, Action.VIEW, identity)
    return tenant_site.render(
        request,
        "konstruct/link_identity.html",
        of_workspace=identity.workspace and f" ({identity.workspace})",
        title=gettext("Link to a user"),
        identity=identity,
        is_linked=identity.user_id != identity.own_id,
        form=form,
        query=urlencode({"user": identity.user_id}),
    )


@tenant_site.post_page(
    "identities/<uuid:identity_id>/unlink/", name="unlink_identity", permission=LINK
)
def unlink_page(request: HttpRequest, identity_id: UUID) -> HttpResponseBase:
    """Unlink an identity."""
    identity = get_object_or_404(ChannelIdentity, pk=identity_id)
    before = row_state(identity)
    success = gettext("It is a separate user from now on. Moved messages stay.")
    with show_outcome(request, success), transaction.atomic():
        unlinked = unlink(identity)
        log_row_access(request, Action.LINK, unlinked, before=before, after=row_state(unlinked))
    return redirect("admin:link_identity", identity.pk)
