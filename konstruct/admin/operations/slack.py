"""Slack: connected workspaces, and members of the team who answer from Slack."""

import re
from functools import partial
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy as _
from unfold.decorators import display

from konstruct.admin.access import AuditedAdmin, AuditedReadOnlyAdmin, log_row_access
from konstruct.admin.pages import PageForm, show_outcome
from konstruct.channels.models import SlackInstallation, SlackMember, SlackUser
from konstruct.channels.slack import installations
from konstruct.orchestrator.models import Agent
from tenants.admin.columns import Colours
from tenants.admin.sites import tenant_site
from tenants.audit.changes import NO_STATE, RowState, row_state
from tenants.audit.models import Action
from tenants.context import required_tenant_id

USER_ID: Final = re.compile(r"[UW][A-Z0-9]{5,49}")


class SlackMemberForm(forms.ModelForm):
    """A Slack user, and the member of the team that they are."""

    class Meta:
        model = SlackMember
        fields = ("installation", "slack_id", "member")

    def clean_slack_id(self) -> str:
        """Require an id, not a name."""
        slack_id: str = self.cleaned_data["slack_id"].strip()
        if not USER_ID.fullmatch(slack_id):
            raise forms.ValidationError(
                gettext(
                    "%(slack_id)r is not the id of a Slack user, such as U024BE7LH."
                    " Slack copies it in the person's profile: More, Copy member ID."
                )
                % {"slack_id": slack_id}
            )
        return slack_id


@admin.register(SlackMember, site=tenant_site)
class SlackMemberAdmin(AuditedAdmin):
    """Members of the team who answer users from Slack, by the permissions of their accounts."""

    form = SlackMemberForm
    list_display = ("slack_id", "installation", "member")
    list_select_related = ("installation", "member")
    search_fields = ("slack_id", "member__username")
    ordering = ("slack_id", "id")

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer connected workspaces, and active members; superusers only to superusers."""
        if db_field.name == "installation":
            kwargs["queryset"] = SlackInstallation.objects.connected()
        elif db_field.name == "member":
            members = User.objects.filter(is_active=True).order_by("username")
            may_all = bool(getattr(request.user, "is_superuser", False))
            kwargs["queryset"] = members if may_all else members.filter(is_superuser=False)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)


CONNECT = "channels.add_slackinstallation"


@admin.register(SlackInstallation, site=tenant_site)
class SlackInstallationAdmin(AuditedReadOnlyAdmin):
    """Workspaces. Their tokens are on no page."""

    list_display = (
        "workspace", "name", "state_label", "agent", "installed_by", "installed_at",
        "ended_because",
    )  # fmt: skip
    list_filter = ("state",)
    list_select_related = ("agent",)
    search_fields = ("workspace", "name", "installed_by")
    actions = ("disconnect",)
    actions_by_row = ("disconnect",)

    @display(
        description=_("State"), label=Colours({"connected": "success", "disconnected": "danger"})
    )
    def state_label(self, installation: SlackInstallation) -> str:
        """Return the word for the row's state."""
        return str(installation.get_state_display())

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Return whether the user may connect workspaces. They are added by way of Slack."""
        return request.user.has_perm(CONNECT)

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Begin where a workspace is connected."""
        if not self.has_add_permission(request):
            return super().add_view(request, *args, **kwargs)  # which refuses
        return redirect("admin:slack_connect")

    @admin.action(description=_("Disconnect"), permissions=["act"])
    def disconnect(self, request: HttpRequest, queryset: QuerySet[SlackInstallation]) -> None:
        """Disconnect the selected workspaces, and revoke their tokens at Slack."""
        disconnected = 0
        for installation in queryset.filter(state=SlackInstallation.State.CONNECTED):
            problem = installations.disconnect(
                installation,
                by=request.user.get_username(),
                on_change=partial(_log_change, request),
            )
            disconnected += 1
            if problem:
                self.message_user(
                    request,
                    gettext(
                        "%(installation)s is disconnected here, but its token was not revoked at"
                        " Slack: %(problem)s Remove the app in the workspace's settings."
                    )
                    % {"installation": installation, "problem": problem},
                    messages.WARNING,
                )
        if disconnected:
            self.message_user(
                request,
                gettext("%(done)s disconnected.") % {"done": disconnected},
                messages.SUCCESS,
            )


@admin.register(SlackUser, site=tenant_site)
class SlackUserAdmin(AuditedReadOnlyAdmin):
    """Names of Slack users."""

    list_display = ("slack_id", "name", "user_id", "workspace", "looked_up_at")
    search_fields = ("slack_id", "name", "user_id")
    ordering = ("workspace", "slack_id")


class ConnectForm(PageForm):
    """The agent that answers in the workspace."""

    agent = forms.ModelChoiceField(
        Agent.objects.active(),
        label=_("Agent"),
        help_text=_("Answers in the workspace, and remembers the messages that it receives there."),
    )


@tenant_site.page("slack/connect/", permission=CONNECT)
def slack_connect(request: HttpRequest) -> HttpResponseBase:
    """Choose an agent; then go to Slack, by a link that is good for ten minutes."""
    form, address = ConnectForm(request.POST or None), ""
    if request.method == "POST" and form.is_valid():
        agent_id, tenant_id = form.cleaned_data["agent"].pk, required_tenant_id()
        with show_outcome(request, form=form):
            address = installations.begin(request, tenant_id=tenant_id, agent_id=agent_id)
    return tenant_site.render(
        request,
        "konstruct/slack_connect.html",
        title=gettext("Connect a Slack workspace"),
        form=form,
        address=address,
        is_configured=installations.is_configured(),
    )


@tenant_site.page("slack/finish/", permission=CONNECT)
def slack_finish(request: HttpRequest) -> HttpResponseBase:
    """Connect the workspace that Slack sends us back from."""
    with show_outcome(request):
        installation = installations.finish(
            request, tenant_id=required_tenant_id(), on_change=partial(_log_change, request)
        )
        text = gettext("%(installation)s is connected. Invite the bot to a channel there.")
        messages.success(request, text % {"installation": installation})
        return redirect("admin:channels_slackinstallation_changelist")
    return redirect("admin:slack_connect")


def _log_change(request: HttpRequest, before: RowState, installation: SlackInstallation) -> None:
    """Log that a workspace was connected or changed."""
    action = Action.CREATE if before is NO_STATE else Action.EDIT
    log_row_access(request, action, installation, before=before, after=row_state(installation))
