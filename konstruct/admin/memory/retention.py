"""Retention rules: how long conversations are kept. The owner's process applies them."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.validators import MaxValueValidator, MinValueValidator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST
from unfold.decorators import display
from unfold.widgets import UnfoldAdminIntegerFieldWidget

from konstruct.admin.access import AgentNameAdmin, log_row_access
from konstruct.admin.pages import AgentField, as_uuid
from konstruct.orchestrator import retention_rules
from konstruct.orchestrator.retention_rules import MAX_DAYS, RetentionShortened
from tenants import transaction
from tenants.admin.columns import format_number, time_text
from tenants.admin.sites import tenant_site
from tenants.audit.changes import row_state
from tenants.audit.models import Action, RetentionRule

ALL_OTHERS = _("all others")
CHANGE = "audit.change_retentionrule"


class RetentionForm(forms.ModelForm):
    """A rule: an agent, and a number of days."""

    agent_id = AgentField(
        ALL_OTHERS,
        help_text=_("The agent of the rule. All others: agents without a rule."),
    )
    days = forms.IntegerField(
        label=_("Days"),
        validators=[MinValueValidator(1), MaxValueValidator(MAX_DAYS)],
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=_(
            "Older messages are removed every hour, with their vectors and records, and "
            "cannot be restored. Facts have their own expiry. Fewer days than now take effect "
            "after a day, and can be cancelled until then."
        ),
    )

    class Meta:
        model = RetentionRule
        fields = ("agent_id", "days")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            # For another agent it would be a new rule, and the end of this one.
            self.fields["agent_id"].disabled = True
            self.initial["days"] = self.instance.next_days or self.instance.days

    def clean_agent_id(self) -> UUID | None:
        """One rule for each."""
        agent_id: UUID | None = self.cleaned_data["agent_id"]
        others = RetentionRule.objects.exclude(pk=self.instance.pk)
        if others.filter(agent_id=agent_id).exists():
            raise forms.ValidationError(gettext("There is a rule for it already: change that one."))
        return agent_id


@admin.register(RetentionRule, site=tenant_site)
class RetentionRuleAdmin(AgentNameAdmin):
    """Without a rule, conversations are kept indefinitely."""

    form = RetentionForm
    list_display = ("agent", "days_label", "change", "created_at")
    ordering = ("created_at",)
    sortable_by = ()
    change_form_outer_before_template = "konstruct/retention_change.html"

    @display(description=_("Agent"))
    def agent(self, row: Any) -> str:
        """The agent's name, or all others."""
        return super().agent(row) if row.agent_id else str(ALL_OTHERS)

    @display(description=_("Days"))
    def days_label(self, row: RetentionRule) -> str:
        """Return the days that are in effect now."""
        return gettext("for good") if row.days >= MAX_DAYS else format_number(row.days)

    @display(description=_("Change"), empty_value=_("none"))
    def change(self, row: RetentionRule) -> str:
        """The change that waits."""
        if row.effective_at is None:
            return ""
        return gettext("%(next_days)s days from %(effective_at)s") % {
            "next_days": row.next_days,
            "effective_at": time_text(row.effective_at),
        }

    def get_actions(self, request: HttpRequest) -> Any:
        """Rules are deleted one by one: each is checked."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the messages that a pending change would remove."""
        waits = RetentionRule.objects.filter(effective_at__isnull=False)
        waiting = waits.filter(pk__in=filter(None, [as_uuid(object_id)])).first()
        context = {**(extra_context or {}), "waiting": waiting}
        if waiting is not None and request.method == "GET":
            context["preview"] = retention_rules.preview(waiting)
        return super().change_view(request, object_id, form_url, context)

    def save_model(self, request: HttpRequest, obj: RetentionRule, form: Any, change: bool) -> None:
        """Save the rule; fewer days wait."""
        retention_rules.set_days(obj, form.cleaned_data["days"])

    def delete_view(self, request: HttpRequest, object_id: str, *args: Any) -> HttpResponse:
        """Refuse to delete a rule without which conversations would be removed earlier."""
        try:
            with transaction.atomic():
                return super().delete_view(request, object_id, *args)
        except RetentionShortened as error:
            self.message_user(request, str(error), messages.ERROR)
            return redirect(_page_of(object_id))

    def remove(self, obj: Any) -> None:
        """Delete the rule, if no conversation is removed earlier without it."""
        retention_rules.remove_rule(obj)

    def response_post_save_add(self, request: HttpRequest, obj: RetentionRule) -> HttpResponse:
        return self.response_post_save_change(request, obj)

    def response_post_save_change(self, request: HttpRequest, obj: RetentionRule) -> HttpResponse:
        """Redirect to the preview of a pending change."""
        if obj.effective_at is not None:
            return redirect(_page_of(obj.pk))
        return super().response_post_save_change(request, obj)


@tenant_site.page("retention/<uuid:rule_id>/cancel/", name="cancel_retention", permission=CHANGE)
@require_POST
def cancel(request: HttpRequest, rule_id: UUID) -> HttpResponse:
    """Cancel the change of a rule that waits."""
    with transaction.atomic():
        rule = get_object_or_404(RetentionRule.objects.select_for_update(), pk=rule_id)
        before = row_state(rule)
        if retention_rules.cancel_change(rule):
            rule.refresh_from_db()
            log_row_access(request, Action.EDIT, rule, before=before, after=row_state(rule))
            messages.success(request, gettext("The change is cancelled."))
        else:
            messages.warning(
                request, gettext("No change waits: it has taken effect or was cancelled.")
            )
    return redirect(_page_of(rule_id))


def _page_of(pk: Any) -> str:
    return reverse("admin:audit_retentionrule_change", args=[pk])
