"""What receives events: notifications, webhooks and Slack, with what was sent."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import F, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy as _
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from konstruct.admin import access, pages, queue
from konstruct.apps import translated_choices
from konstruct.channels import webhooks
from konstruct.channels.models import SlackInstallation, SlackMember
from konstruct.channels.notifications import is_mail_configured, send_open, send_test
from konstruct.channels.slack import installations
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.usage import require_fewer
from konstruct.outgoing import AddressRefused
from tenants import context, error_texts, exceptions
from tenants.admin.sites import tenant_site
from tenants.audit.changes import NO_STATE, RowState, row_state
from tenants.audit.models import Action
from tenants.outbox.models import (
    NOTIFICATIONS,
    EventDelivery,
    EventType,
    OutboxEvent,
    Subscription,
    Target,
)


def workspace_choices() -> list[tuple[str, str]]:
    """Return the connected workspaces, for a form."""
    rows = SlackInstallation.objects.connected()
    return [("", "-"), *((row.workspace, f"{row.name} ({row.workspace})") for row in rows)]


class SubscriptionForm(error_texts.TranslatedModelForm):
    """A destination and its events. Fields of another destination are not kept."""

    workspace = forms.ChoiceField(
        label=_("Slack workspace"),
        required=False,
        choices=workspace_choices,
        widget=UnfoldAdminSelectWidget,
        help_text=_("A connected workspace."),
    )

    class Meta:
        model = Subscription
        fields = (
            "target", "url", "addresses", "workspace", "slack_channel", "types",
            "includes_content", "wait_minutes", "review_threshold", "description", "is_active",
        )  # fmt: skip
        field_classes = {"url": forms.CharField}
        widgets = dict.fromkeys(("url", "addresses", "description"), UnfoldAdminTextInputWidget)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "target" in self.fields:  # not for people who may only read
            self.fields["target"].disabled = not self.instance._state.adding

    def clean(self) -> dict[str, Any]:
        """Require the fields of the destination, and refuse addresses that no event is sent to."""
        values: dict[str, Any] = super().clean() or {}
        workspace = gettext("Choose a connected workspace. Others are connected under Slack.")
        required_fields = {
            "url": (Target.WEBHOOK, gettext("Give the URL.")),
            "addresses": (Target.MAIL, gettext("Give the address.")),
            "workspace": (Target.SLACK, workspace),
            "slack_channel": (Target.SLACK, gettext("Give Slack's id of the channel.")),
        }
        for name, (target, problem) in required_fields.items():
            if target != values.get("target", self.instance.target):
                values[name] = [] if name == "addresses" else ""
            elif not values.get(name) and name not in self.errors:
                self.add_error(name, problem)
        if values.get("target", self.instance.target) != Target.WEBHOOK and not values.get("types"):
            self.add_error("types", gettext("Choose the events."))
        if url := values.get("url"):
            try:
                webhooks.check_address(url)
            except AddressRefused as error:
                self.add_error("url", str(error))
        return values


@admin.register(Subscription, site=tenant_site)
class SubscriptionAdmin(access.AuditedAdmin):
    """Programs, mail addresses and Slack channels that get events."""

    form = SubscriptionForm
    redirects_after_add = True
    list_display = ("__str__", "target", "event_labels", "description", "is_active", "created_at")
    list_filter = ("is_active", "target")
    search_fields = ("url", "description")
    ordering = ("created_at", "id")
    actions = ("send_test", "rotate")
    actions_by_row = ("send_test",)
    conditional_fields = {
        **dict.fromkeys(("url", "description"), "target == 'webhook'"),
        "addresses": "target == 'mail'",
        **dict.fromkeys(("workspace", "slack_channel"), "target == 'slack'"),
        **dict.fromkeys(("wait_minutes", "review_threshold"), "target != 'webhook'"),
    }

    @display(description=_("Events"))
    def event_labels(self, row: Subscription) -> str:
        """The types of events."""
        labels = dict(translated_choices(EventType.choices))
        return "; ".join(str(labels.get(name, name)) for name in row.types) or gettext("everything")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Require the permissions to read what is sent."""
        return super().has_add_permission(request) and request.user.has_perms(webhooks.READS)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Require the permissions to read what is sent."""
        return super().has_change_permission(request, obj) and request.user.has_perms(
            webhooks.READS
        )

    def has_act_permission(self, request: HttpRequest) -> bool:
        """Require the same for actions."""
        return self.has_change_permission(request)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save the row with the services that the API uses; people get what is open."""
        if obj.target == Target.WEBHOOK and not change:
            names = ("url", "types", "includes_content", "description", "is_active")
            values = {name: form.cleaned_data[name] for name in names}
            obj.text = webhooks.create_webhook(**values, webhook_id=obj.pk)[1]
            return
        if not change:
            require_fewer(Subscription.objects.all(), webhooks.MAX_WEBHOOKS)
        super().save_model(request, obj, form, change)
        if obj.target != Target.WEBHOOK:
            send_open(obj)
        if obj.target == Target.MAIL and not is_mail_configured():
            text = gettext("This deployment cannot send mail yet: ask its operator.")
            self.message_user(request, text, messages.WARNING)

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the secret of a webhook once."""
        if obj.target != Target.WEBHOOK:
            return super().response_add(request, obj, post_url_continue)
        return self._show(request, obj, obj.text)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete the row, with its deliveries and their jobs."""
        webhooks.delete_subscription(obj)

    @admin.action(description=_("Send a test"), permissions=["act"])
    def send_test(self, request: HttpRequest, queryset: QuerySet[Subscription]) -> None:
        """Send a test to each selected recipient now."""
        for row in queryset[: self.list_per_page]:
            try:
                send_test(row)
            except exceptions.KonstructError as error:
                self.message_user(request, f"{row}: {error}", messages.ERROR)
                continue
            access.log_row_access(request, Action.SEND, row)
            self.message_user(
                request, gettext("A test was sent to %(row)s.") % {"row": row}, messages.SUCCESS
            )

    @admin.action(description=_("Rotate the secret"), permissions=["act"])
    def rotate(self, request: HttpRequest, queryset: QuerySet[Subscription]) -> HttpResponse | None:
        """Replace the secret of one webhook, and show the new one once."""
        if queryset.filter(target=Target.WEBHOOK).count() != 1:
            self.message_user(request, gettext("Choose one webhook."), messages.ERROR)
            return None
        webhook, secret = webhooks.rotate_secret(queryset.get(target=Target.WEBHOOK).pk)
        access.log_row_access(request, Action.EDIT, webhook)
        return self._show(request, webhook, secret)

    def _show(self, request: HttpRequest, webhook: Subscription, secret: str) -> HttpResponse:
        return tenant_site.render(
            request,
            "konstruct/new_secret.html",
            title=gettext("Copy the secret now"),
            webhook=webhook,
            text=secret,
        )


@admin.register(OutboxEvent, site=tenant_site)
class OutboxEventAdmin(access.AgentRowsAdmin, access.AuditedReadOnlyAdmin):
    """Events of the last 30 days, as programs read and receive them."""

    list_display = ("created_at", "type", "agent", "user_id", "thread_id", "subject_id")
    list_filter = ("type", pages.AgentFilter, pages.UserFilter)
    search_fields = ("=user_id", "=thread_id")
    ordering = ("-created_at", "id")


@admin.register(EventDelivery, site=tenant_site)
class EventDeliveryAdmin(queue.JobAdmin):
    """Events that are, or were, sent to programs and people."""

    kind = NOTIFICATIONS
    job_key = OuterRef("pk")
    states = ("queued", "failed", "delivered")
    user_id = staticmethod(pages.user)
    list_display = (
        "created_at", "event", "subscription", "user_id", "state", "status", "attempts",
        "last_error", "due_at", "delivered_at",
    )  # fmt: skip
    list_filter = (queue.JobStateFilter, "subscription__target", "event__type")
    list_select_related = ("subscription", "event")
    search_fields = ("=event__user_id", "subscription__url")
    ordering = ("-created_at", "id")
    actions = ("retry", "send_again")

    def get_queryset(self, request: HttpRequest) -> QuerySet[EventDelivery]:
        """Add the user of the event."""
        return super().get_queryset(request).annotate(user_id=F("event__user_id"))

    @admin.action(description=_("Send again"), permissions=["act"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[EventDelivery]) -> None:
        """Send the selected events once more, also those that were delivered."""
        for delivery in queryset:
            webhooks.send_again(delivery)
            access.log_row_access(request, Action.SEND, delivery)
        self.message_user(request, gettext("They are sent again."), messages.SUCCESS)


@admin.register(SlackMember, site=tenant_site)
class SlackMemberAdmin(access.AuditedAdmin):
    """Members of the team who answer users from Slack, by the permissions of their accounts."""

    fields = ("installation", "slack_id", "member")
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
class SlackInstallationAdmin(access.AuditedReadOnlyAdmin):
    """Workspaces. Their tokens are on no page."""

    list_display = (
        "workspace", "name", "state", "agent", "installed_by", "installed_at",
        "ended_because",
    )  # fmt: skip
    list_filter = ("state",)
    list_select_related = ("agent",)
    search_fields = ("workspace", "name", "installed_by")
    actions = ("disconnect",)
    actions_by_row = ("disconnect",)

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


class ConnectForm(pages.PageForm):
    """The agent that answers in the workspace."""

    agent = forms.ModelChoiceField(
        Agent.objects.active(),
        label=_("Agent"),
        help_text=_("Answers in the workspace, and remembers the messages that it receives there."),
    )


@tenant_site.page("slack/connect/", permission=CONNECT, title=_("Connect a Slack workspace"))
def slack_connect(request: HttpRequest) -> dict[str, Any]:
    """Choose an agent; then go to Slack, by a link that is good for ten minutes."""
    form, address = ConnectForm(request.POST or None), ""
    if request.method == "POST" and form.is_valid():
        agent_id, tenant_id = form.cleaned_data["agent"].pk, context.required_tenant_id()
        with pages.show_outcome(request, form=form):
            address = installations.begin(request, tenant_id=tenant_id, agent_id=agent_id)
    return {"form": form, "address": address, "is_configured": installations.is_configured()}


@tenant_site.page("slack/finish/", permission=CONNECT)
def slack_finish(request: HttpRequest) -> HttpResponseBase:
    """Connect the workspace that Slack sends us back from."""
    with pages.show_outcome(request):
        installation = installations.finish(
            request, tenant_id=context.required_tenant_id(), on_change=partial(_log_change, request)
        )
        text = gettext("%(installation)s is connected. Invite the bot to a channel there.")
        messages.success(request, text % {"installation": installation})
        return redirect("admin:channels_slackinstallation_changelist")
    return redirect("admin:slack_connect")


def _log_change(request: HttpRequest, before: RowState, installation: SlackInstallation) -> None:
    """Log that a workspace was connected or changed."""
    action = Action.CREATE if before is NO_STATE else Action.EDIT
    access.log_row_access(
        request, action, installation, before=before, after=row_state(installation)
    )
