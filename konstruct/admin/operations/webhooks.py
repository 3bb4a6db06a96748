"""Webhooks: create one and see its secret once, rotate the secret; events and deliveries."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, gettext_lazy as _
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextInputWidget

from konstruct.admin.access import (
    AgentRowsAdmin,
    AuditedAdmin,
    AuditedReadOnlyAdmin,
    log_row_access,
)
from konstruct.admin.lists import AgentFilter, UserFilter
from konstruct.admin.operations.queue import JobAdmin, JobStateFilter
from konstruct.channels import webhooks
from konstruct.channels.exceptions import ChannelRefused
from konstruct.model_names import translated_choices
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action
from tenants.outbox.models import WEBHOOKS, EventType, OutboxEvent, Webhook, WebhookDelivery


class WebhookForm(forms.ModelForm):
    """The address of a program, and the events that it gets."""

    url = forms.CharField(
        label=_("URL"),
        max_length=2000,
        widget=UnfoldAdminTextInputWidget,
        help_text=Webhook._meta.get_field("url").help_text,
    )
    types = forms.MultipleChoiceField(
        label=_("Events"),
        choices=translated_choices(EventType.choices),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=Webhook._meta.get_field("types").help_text,
    )

    class Meta:
        model = Webhook
        fields = ("url", "types", "includes_content", "description", "is_active")
        widgets = {"description": UnfoldAdminTextInputWidget}

    def clean_url(self) -> str:
        """Refuse addresses that no event is sent to."""
        url: str = self.cleaned_data["url"].strip()
        try:
            webhooks.check_address(url)
        except ChannelRefused as error:
            raise ValidationError(str(error)) from error
        return url


@admin.register(Webhook, site=tenant_site)
class WebhookAdmin(AuditedAdmin):
    """Addresses of programs. The secret is shown once, after it is made."""

    form = WebhookForm
    counted = (_("webhook"), _("webhooks"))
    redirects_after_add = True
    sent_twice = _("The first answer showed the secret. If you have not copied it, rotate it.")
    list_display = ("url", "description", "is_active", "includes_content", "created_at")
    list_filter = ("is_active",)
    search_fields = ("url", "description")
    ordering = ("created_at", "id")
    actions = ("rotate",)
    actions_by_row = ("rotate",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Require the permissions to read what a webhook sends."""
        return super().has_add_permission(request) and request.user.has_perms(webhooks.READS)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Require the permissions to read what a webhook sends."""
        return super().has_change_permission(request, obj) and request.user.has_perms(
            webhooks.READS
        )

    def has_act_permission(self, request: HttpRequest) -> bool:
        """Require the same to rotate the secret."""
        return self.has_change_permission(request)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Create or change the webhook with the service that the API uses."""
        if change:
            webhooks.update_webhook(
                obj, **{name: form.cleaned_data[name] for name in form.changed_data}
            )
            return
        values = {name: form.cleaned_data[name] for name in form.fields}
        created, obj.text = webhooks.create_webhook(**values, webhook_id=obj.pk)
        obj.pk = created.pk

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the secret once."""
        return self._show(request, obj, obj.text)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Name the webhooks alone: their deliveries need no further permission."""
        return [str(webhook) for webhook in objs], {}, set(), []

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete the webhook, with its deliveries and their jobs."""
        webhooks.delete_webhook(obj)

    @admin.action(description=_("Rotate the secret"), permissions=["act"])
    def rotate(self, request: HttpRequest, queryset: QuerySet[Webhook]) -> HttpResponse | None:
        """Replace the secret of one webhook, and show the new one once."""
        if queryset.count() != 1:
            self.message_user(request, gettext("Choose one webhook."), messages.ERROR)
            return None
        webhook, secret = webhooks.rotate_secret(queryset.get().pk)
        log_row_access(request, Action.EDIT, webhook)
        return self._show(request, webhook, secret)

    def _show(self, request: HttpRequest, webhook: Webhook, secret: str) -> HttpResponse:
        return tenant_site.render(
            request,
            "konstruct/new_secret.html",
            title=gettext("Copy the secret now"),
            webhook=webhook,
            text=secret,
        )


@admin.register(OutboxEvent, site=tenant_site)
class OutboxEventAdmin(AgentRowsAdmin, AuditedReadOnlyAdmin):
    """Events of the last 30 days, as programs read and receive them."""

    list_display = ("created_at", "type", "agent", "user_id", "thread_id", "subject_id")
    list_filter = ("type", AgentFilter, UserFilter)
    search_fields = ("=user_id", "=thread_id")
    ordering = ("-created_at", "id")


@admin.register(WebhookDelivery, site=tenant_site)
class WebhookDeliveryAdmin(JobAdmin):
    """Events that are, or were, sent to webhooks."""

    kind = WEBHOOKS
    job_key = OuterRef("pk")
    states = ("queued", "failed", "delivered")
    list_display = (
        "created_at", "event", "webhook", "state", "status", "attempts", "last_error", "due_at",
        "delivered_at",
    )  # fmt: skip
    list_filter = (JobStateFilter, "webhook", "event__type")
    list_select_related = ("webhook", "event")
    search_fields = ("=event__user_id", "webhook__url")
    ordering = ("-created_at", "id")
    actions = ("retry", "send_again")

    @admin.action(description=_("Send again"), permissions=["act"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[WebhookDelivery]) -> None:
        """Send the selected events once more, also those that were delivered."""
        for delivery in queryset:
            webhooks.send_again(delivery)
            log_row_access(request, Action.SEND, delivery)
        self.message_user(request, gettext("They are sent again."), messages.SUCCESS)
