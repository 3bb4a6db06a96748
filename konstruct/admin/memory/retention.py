"""How long conversations are kept: rules that people set, and the owner's process applies."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import display
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminSelectWidget

from konstruct.admin.access import AuditedAdmin
from konstruct.admin.lists import agent_names, with_agent_name
from tenants.admin.sites import tenant_site
from tenants.audit.models import RetentionRule

ALL_OTHERS = "all others"
MAX_DAYS = 36_500


class RetentionForm(forms.ModelForm):
    """A rule: whose conversations, and for how many days."""

    agent_id = forms.TypedChoiceField(
        label="Agent",
        required=False,
        coerce=lambda value: UUID(str(value)),
        empty_value=None,
        widget=UnfoldAdminSelectWidget,
        help_text="Whose conversations; all others: of agents without a rule of their own.",
    )
    days = forms.IntegerField(
        label="Days",
        validators=[MinValueValidator(1), MaxValueValidator(MAX_DAYS)],
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="What was said longer ago is removed every hour, with all that was made of it, "
        "and cannot be brought back. Facts have an end of their own.",
    )

    class Meta:
        model = RetentionRule
        fields = ("agent_id", "days")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "agent_id" in self.fields:
            known = [(str(pk), name) for pk, name in agent_names().items()]
            self.fields["agent_id"].choices = [("", ALL_OTHERS), *known]  # type: ignore[attr-defined]  # a choice field's

    def clean_agent_id(self) -> UUID | None:
        """One rule for each."""
        agent_id: UUID | None = self.cleaned_data["agent_id"]
        others = RetentionRule.objects.exclude(pk=self.instance.pk)
        if others.filter(agent_id=agent_id).exists():
            raise forms.ValidationError("There is a rule for it already: change that one.")
        return agent_id


@admin.register(RetentionRule, site=tenant_site)
class RetentionRuleAdmin(AuditedAdmin):
    """Without a rule, conversations are kept for good."""

    form = RetentionForm
    list_display = ("whose", "days", "created_at")
    ordering = ("created_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return with_agent_name(super().get_queryset(request))

    def get_sortable_by(self, request: HttpRequest) -> list[str]:
        return []

    @display(description="Whose")
    def whose(self, rule: Any) -> str:
        """The agent's name."""
        return rule.agent_name if rule.agent_id else ALL_OTHERS
