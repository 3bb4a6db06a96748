"""Retention rules: how long conversations are kept. The owner's process applies them."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.core.validators import MaxValueValidator, MinValueValidator
from unfold.decorators import display
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminSelectWidget

from konstruct.admin.access import AgentNameAdmin
from konstruct.admin.lists import agent_choices
from tenants.admin.sites import tenant_site
from tenants.audit.models import RetentionRule

ALL_OTHERS = "all others"
MAX_DAYS = 36_500


class RetentionForm(forms.ModelForm):
    """A rule: an agent, and a number of days."""

    agent_id = forms.TypedChoiceField(
        label="Agent",
        required=False,
        coerce=lambda value: UUID(str(value)),
        empty_value=None,
        choices=agent_choices(ALL_OTHERS),
        widget=UnfoldAdminSelectWidget,
        help_text="The agent whose conversations are removed; all others: agents without a rule.",
    )
    days = forms.IntegerField(
        label="Days",
        validators=[MinValueValidator(1), MaxValueValidator(MAX_DAYS)],
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Older messages are removed every hour, with their vectors and records, and "
        "cannot be restored. Facts have their own expiry.",
    )

    class Meta:
        model = RetentionRule
        fields = ("agent_id", "days")

    def clean_agent_id(self) -> UUID | None:
        """One rule for each."""
        agent_id: UUID | None = self.cleaned_data["agent_id"]
        others = RetentionRule.objects.exclude(pk=self.instance.pk)
        if others.filter(agent_id=agent_id).exists():
            raise forms.ValidationError("There is a rule for it already: change that one.")
        return agent_id


@admin.register(RetentionRule, site=tenant_site)
class RetentionRuleAdmin(AgentNameAdmin):
    """Without a rule, conversations are kept for good."""

    form = RetentionForm
    list_display = ("agent", "days", "created_at")
    ordering = ("created_at",)
    sortable_by = ()

    @display(description="Agent")
    def agent(self, row: Any) -> str:
        """The agent's name, or all others."""
        return super().agent(row) if row.agent_id else ALL_OTHERS
