"""Language models of the tenant: their servers, keys, prices and limits, and a test of each."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _
from unfold.decorators import display
from unfold.widgets import UnfoldAdminPasswordWidget

from konstruct.admin.access import AuditedAdmin, log_row_access
from konstruct.admin.pages import show_outcome
from konstruct.orchestrator import language_models
from konstruct.orchestrator.dry_runs import measure_language_model
from konstruct.orchestrator.models import LanguageModel
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action


class LanguageModelForm(forms.ModelForm):
    """The settings of a language model. Its key is entered, and never shown."""

    key = forms.CharField(
        label=_("Key"),
        required=False,
        max_length=2000,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text=_("The key of the server. Blank: the stored key, or none."),
    )

    class Meta:
        model = LanguageModel
        fields = (
            "name", "kind", "endpoint", "key", "model", "prompt_price", "completion_price",
            "timeout_seconds", "max_tokens_per_day", "position", "min_score", "is_active",
        )  # fmt: skip

    def clean(self) -> dict[str, Any]:
        """Check the key, which is not sent to another address."""
        values: dict[str, Any] = super().clean() or {}
        stored = LanguageModel.objects.filter(pk=self.instance.pk).first()
        key = values.get("key") or None
        language_models.check_key(key, endpoint=values.get("endpoint", ""), stored=stored)
        return values


@admin.register(LanguageModel, site=tenant_site)
class LanguageModelAdmin(AuditedAdmin):
    """Language models of the tenant, in the order in which agents without own ones call them."""

    form = LanguageModelForm
    list_display = (
        "name",
        "kind",
        "position",
        "endpoint",
        "model",
        "has_key",
        "is_active",
        "created_at",
    )
    list_filter = ("kind", "is_active")
    search_fields = ("name", "endpoint", "model")
    readonly_fields = ("has_key", "test")

    def get_fields(self, request: HttpRequest, obj: LanguageModel | None = None) -> Any:
        """Return the fields of the form; of a stored model also its test."""
        names = LanguageModelForm.Meta.fields
        return names if obj is None else (*names, *self.readonly_fields)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Create or change the model with the service that the API uses."""
        if not change:
            language_models.create_language_model(**form.cleaned_data, id=obj.pk)
            return
        values = {name: form.cleaned_data[name] for name in form.changed_data if name != "key"}
        key = form.cleaned_data["key"] or None
        language_models.update_language_model(obj, key=key, **values)

    def delete_model(self, request: HttpRequest, obj: LanguageModel) -> None:
        """Delete a model that no agent names."""
        language_models.delete_language_model(obj)

    def delete_view(self, request: HttpRequest, object_id: str, *args: Any) -> HttpResponse:
        """Show why a model is not deleted."""
        with show_outcome(request):
            return super().delete_view(request, object_id, *args)
        return redirect("admin:orchestrator_languagemodel_change", object_id)

    def get_actions(self, request: HttpRequest) -> Any:
        """Delete models one by one: those that agents name stay."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    @display(description=_("Key"), boolean=True)
    def has_key(self, model: LanguageModel) -> bool:
        """Whether it has a key."""
        return bool(model.secret_key)

    @display(description=_("Test"))
    def test(self, model: LanguageModel) -> SafeString:
        """A button that tests the stored model."""
        return format_html(
            # The first button of a form is pressed by the Enter key.
            '<button name="_save" hidden></button>'
            '<button class="k-link" formaction="{}">{}</button>',
            reverse("admin:language_model_test", args=[model.pk]),
            gettext("Test the saved language model"),
        )


@tenant_site.post_page(
    "language-models/<uuid:model_id>/test/", permission="orchestrator.change_languagemodel"
)
def language_model_test(request: HttpRequest, model_id: UUID) -> HttpResponseBase:
    """Call a language model, and show how long it took and what it can do."""
    model = get_object_or_404(LanguageModel, pk=model_id)
    log_row_access(request, Action.TRY, model)
    with show_outcome(request):
        test = measure_language_model(model)
        if test.problem:
            messages.error(request, test.problem)
        else:
            answers = {True: gettext("yes"), False: gettext("no")}
            text = gettext(
                "First text after %(first)s, the whole answer after %(seconds).1f s. Streaming:"
                " %(streams)s. Tools: %(tools)s. JSON schema: %(schema)s."
            )
            first = test.first_text_seconds
            messages.success(
                request,
                text
                % {
                    "first": "-" if first is None else f"{first:.1f} s",
                    "seconds": test.seconds,
                    "streams": answers[test.streams],
                    "tools": answers[test.calls_tools],
                    "schema": answers[test.follows_schema],
                },
            )
    return redirect("admin:orchestrator_languagemodel_change", model.pk)
