"""Identities: ids of channels, linked to users in their form."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy as _

from konstruct.admin import lists
from konstruct.admin.access import AuditedAdmin, actor_of
from konstruct.admin.pages import UserField, show_outcome
from konstruct.orchestrator.identities.channel_identities import link, unlink
from konstruct.orchestrator.models import ChannelIdentity, HistoryMerge
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action

VIEW = "orchestrator.view_channelidentity"


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


class LinkForm(forms.ModelForm):
    """The user that an identity is linked to."""

    user_id = UserField(
        help_text=_(
            "The id or the name of a user, as shown under People. Earlier messages are moved "
            "within two minutes, and cannot be separated again. Empty: it is a separate user from "
            "now on; moved messages stay."
        ),
    )

    class Meta:
        model = ChannelIdentity
        fields = ("user_id",)


@admin.register(ChannelIdentity, site=tenant_site)
class ChannelIdentityAdmin(AuditedAdmin):
    """Ids of channels, with the user that each is linked to."""

    form = LinkForm
    list_display = (
        "native_id",
        "name",
        "channel",
        "workspace",
        "user_id",
        "linked_by",
        "linked_at",
    )
    list_filter = (LinkedFilter, "channel")
    search_fields = ("=native_id", "=user_id", "=own_id", "name")
    ordering = ("-created_at", "id")
    readonly_fields = (
        *("channel", "workspace", "native_id", "name", "own_id", "created_at"),
        *("linked_at", "linked_by"),
    )
    fields = ("user_id", *readonly_fields)
    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show the form, or the reason why the identity cannot be linked so."""
        with show_outcome(request), transaction.atomic():
            return super().changeform_view(request, *args, **kwargs)
        return redirect(request.path)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Link the identity, or unlink it."""
        user_id = form.cleaned_data["user_id"]
        if user_id:
            link(obj, user_id, by=actor_of(request).name)
        else:
            unlink(obj)

    def record(self, request: HttpRequest, action: str, row: Any = None, **detail: Any) -> None:
        """Log a change as that of a link."""
        super().record(request, Action.LINK if action == Action.EDIT else action, row, **detail)
