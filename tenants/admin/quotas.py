"""Quotas in the operators' form of a tenant: two fields for each, empty for unlimited."""

from decimal import Decimal
from typing import Any, Final

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminTextInputWidget

from tenants.admin.columns import ChoiceFilter
from tenants.limits import quotas
from tenants.models import Tenant

# Name of the form field, quota, and level of the limit.
FIELDS: Final = tuple(
    (f"quota_{quota.value}_{level}", quota, level)
    for quota in quotas.Quota
    for level in ("soft", "hard")
    if level == "hard" or quota.has_soft_limit
)
NAMES: Final = tuple(name for name, _quota, _level in FIELDS)
_LEVELS: Final = {"soft": _("soft limit"), "hard": _("hard limit")}


def _field(quota: quotas.Quota, level: str) -> forms.DecimalField:
    return forms.DecimalField(
        required=False,
        # Two operators may edit the same page: each changes only the fields that they edited.
        show_hidden_initial=True,
        min_value=0,
        decimal_places=6 if quota is quotas.Quota.COST else 0,
        widget=UnfoldAdminTextInputWidget(attrs={"inputmode": "decimal"}),
        label=format_lazy("{}: {}", quotas.LABELS[quota], _LEVELS[level]),
        help_text=_("Empty: unlimited."),
    )


class QuotaFields(forms.ModelForm):
    """A tenant with its limits."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        limits = quotas.limits_of(self.instance.quotas)
        for name, quota, level in FIELDS:
            if name in self.fields:
                self.initial[name] = getattr(limits.get(quota, quotas.UNLIMITED), level)

    def clean(self) -> dict[str, Any]:
        """Check each quota's limits together."""
        cleaned: dict[str, Any] = super().clean() or {}
        for quota, limit in self.limits(cleaned).items():
            try:
                quotas.check_limit(quota, limit)
            except quotas.QuotaInvalid as error:
                self.add_error(f"quota_{quota.value}_hard", str(error))
        return cleaned

    @staticmethod
    def limits(cleaned: dict[str, Any]) -> dict[quotas.Quota, quotas.Limit]:
        """Return the limits of the form."""
        values: dict[quotas.Quota, dict[str, Decimal | None]] = {
            quota: {} for quota in quotas.Quota
        }
        for name, quota, level in FIELDS:
            values[quota][level] = cleaned.get(name)
        return {quota: quotas.Limit(**limits) for quota, limits in values.items()}


TenantForm: Final = type(
    "TenantForm", (QuotaFields,), {name: _field(quota, level) for name, quota, level in FIELDS}
)


def save_limits(form: Any) -> None:
    """Set the limits of the quotas that were changed in the form."""
    changed = {quota for name, quota, _level in FIELDS if name in form.changed_data}
    if changed:
        limits = form.limits(form.cleaned_data)
        found = quotas.set_limits(form.instance.pk, {quota: limits[quota] for quota in changed})
        form.instance.quotas = found.quotas


class ReachedFilter(ChoiceFilter):
    """Tenants that have reached a limit."""

    title = _("quota")
    parameter_name = "quota"
    values = {"reached": _("a limit is reached")}

    def narrow(self, rows: Any, value: str) -> Any:
        return rows.with_reached_quotas()


def reached_text(tenant: Tenant) -> str:
    """Return the limits that a tenant has reached, in one line."""
    reached = tenant.usage.get("reached", {})
    return ", ".join(
        f"{quota.label}: {_LEVELS[reached[quota.value]['level']]}"
        for quota in quotas.Quota
        if quota.value in reached
    )
