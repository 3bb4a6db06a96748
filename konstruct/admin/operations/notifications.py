"""Notifications and Slack: recipients, connected workspaces, and members who answer from Slack."""

import re
from functools import partial
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy as _
from unfold.decorators import display
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminSelectWidget

from konstruct.admin.access import (
    AgentRowsAdmin,
    AuditedAdmin,
    AuditedReadOnlyAdmin,
    log_row_access,
)
from konstruct.admin.lists import AgentFilter, UserFilter
from konstruct.admin.operations.queue import JobListAdmin, JobStateFilter
from konstruct.admin.pages import PageForm, show_outcome
from konstruct.channels.models import SlackInstallation, SlackMember, SlackUser
from konstruct.channels.notifications.checks import NOTIFICATIONS
from konstruct.channels.notifications.sending import is_mail_configured, send_test
from konstruct.channels.slack import installations
from konstruct.model_names import translated_choices
from konstruct.orchestrator.models import (
    Agent,
    Destination,
    Event,
    Notification,
    NotificationRecipient,
)
from konstruct.orchestrator.notifications import notify_of_all_open
from tenants.admin.columns import Colours
from tenants.admin.sites import tenant_site
from tenants.audit.changes import NO_STATE, RowState, row_state
from tenants.audit.models import Action
from tenants.context import required_tenant_id
from tenants.exceptions import KonstructError

CHANNEL_ID: Final = re.compile(r"[CG][A-Z0-9]{5,49}")
USER_ID: Final = re.compile(r"[UW][A-Z0-9]{5,49}")


def workspace_choices() -> list[tuple[str, str]]:
    """Return the connected workspaces, for a form."""
    rows = SlackInstallation.objects.connected()
    return [("", "-"), *((row.workspace, f"{row.name} ({row.workspace})") for row in rows)]


class RecipientForm(forms.ModelForm):
    """A recipient. Of the three ways to name it, the chosen one is kept."""

    # Without unfold's wrapper of related fields: the content security policy forbids its script.
    member = forms.ModelChoiceField(
        User.objects.filter(is_active=True).order_by("username"),
        label=_("Member"),
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text=NotificationRecipient._meta.get_field("member").help_text,
    )
    events = forms.MultipleChoiceField(
        label=_("Notify of"),
        choices=translated_choices(Event.choices),
        initial=Event.values,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )
    workspace = forms.ChoiceField(
        label=_("Slack workspace"),
        required=False,
        choices=workspace_choices,
        widget=UnfoldAdminSelectWidget,
        help_text=_("A connected workspace."),
    )

    class Meta:
        model = NotificationRecipient
        fields = (
            "destination", "member", "email", "workspace", "slack_channel", "events",
            "wait_minutes", "review_threshold", "includes_question", "is_active",
        )  # fmt: skip

    def clean(self) -> dict[str, Any]:
        """Require the fields of the destination."""
        values: dict[str, Any] = super().clean() or {}
        workspace = gettext("Choose a connected workspace. Others are connected under Slack.")
        required_fields = {
            "member": (Destination.MEMBER, gettext("Choose the member of the team.")),
            "email": (Destination.MAIL, gettext("Give the address.")),
            "workspace": (Destination.SLACK, workspace),
            "slack_channel": (Destination.SLACK, gettext("Give Slack's id of the channel.")),
        }
        for name, (destination, problem) in required_fields.items():
            if destination != values.get("destination"):
                values[name] = None if name == "member" else ""
            elif not values.get(name) and name not in self.errors:
                self.add_error(name, problem)
        member = values.get("member")
        if member is not None and not member.email:
            self.add_error(
                "member",
                gettext("%(member)s has no mail address: add it under Team.") % {"member": member},
            )
        channel = values.get("slack_channel")
        if channel and not CHANNEL_ID.fullmatch(channel):
            self.add_error(
                "slack_channel",
                gettext(
                    "%(channel)r is not the id of a Slack channel, such as C024BE7LR. Slack shows"
                    " it at the end of the channel's details."
                )
                % {"channel": channel},
            )
        return values


@admin.register(NotificationRecipient, site=tenant_site)
class NotificationRecipientAdmin(AuditedAdmin):
    """Recipients of notifications and their events, with a test notification."""

    form = RecipientForm
    counted = (_("recipient"), _("recipients"))
    list_display = ("recipient", "event_labels", "is_active")
    list_filter = ("is_active", "destination")
    list_select_related = ("member",)
    ordering = ("created_at", "id")
    sortable_by = ()
    actions = ("send_test",)
    actions_by_row = ("send_test",)
    fieldsets = (
        (_("Recipient"), {"fields": (
            "destination", "member", "email", "workspace", "slack_channel", "is_active",
        )}),
        (_("Events"), {"fields": (
            "events", "wait_minutes", "review_threshold", "includes_question",
        )}),
    )  # fmt: skip
    conditional_fields = {
        "member": "destination == 'member'",
        "email": "destination == 'mail'",
        "workspace": "destination == 'slack'",
        "slack_channel": "destination == 'slack'",
    }

    @display(description=_("Recipient"))
    def recipient(self, row: NotificationRecipient) -> str:
        """The person or channel."""
        return str(row)

    @display(description=_("Notified of"))
    def event_labels(self, row: NotificationRecipient) -> str:
        """The events."""
        labels = dict(translated_choices(Event.choices))
        if len(row.events) == len(labels):
            return gettext("everything")
        return "; ".join(str(labels.get(event, event)) for event in row.events)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save the recipient, and notify it of open events."""
        super().save_model(request, obj, form, change)
        notify_of_all_open()
        if obj.destination != Destination.SLACK and not is_mail_configured():
            text = gettext("This deployment cannot send mail yet: ask its operator.")
            self.message_user(request, text, messages.WARNING)

    @admin.action(description=_("Send a test"), permissions=["act"])
    def send_test(self, request: HttpRequest, queryset: QuerySet[NotificationRecipient]) -> None:
        """Send a test to each selected recipient now."""
        for row in queryset[: self.list_per_page]:
            try:
                send_test(row)
            except KonstructError as error:
                self.message_user(request, f"{row}: {error}", messages.ERROR)
                continue
            log_row_access(request, Action.SEND, row)
            self.message_user(
                request, gettext("A test was sent to %(row)s.") % {"row": row}, messages.SUCCESS
            )


@admin.register(Notification, site=tenant_site)
class NotificationAdmin(AgentRowsAdmin, JobListAdmin):
    """Notifications that were sent, or are to be sent. Sent ones are kept for 90 days."""

    kind = NOTIFICATIONS
    job_key = OuterRef("pk")
    states = ("queued", "failed", "delivered")
    list_display = (
        "created_at", "event", "recipient", "state", "agent", "user_id", "last_error", "due_at",
        "sent_at",
    )  # fmt: skip
    list_filter = (JobStateFilter, "event", "recipient", AgentFilter, UserFilter)
    list_select_related = ("recipient__member",)


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
