"""Agents, their versions, and the language models that answer for them."""

import json
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.contrib.postgres.forms import SimpleArrayField
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import capfirst, format_lazy
from django.utils.translation import gettext, gettext_lazy as _
from unfold import widgets

from konstruct.admin import access
from konstruct.admin.pages import agent_names, link, mark_difference, show_outcome
from konstruct.orchestrator import agents, dry_runs, exceptions, language_models, tool_catalog
from konstruct.orchestrator.models import Agent, AgentVersion, LanguageModel
from konstruct.templatetags.texts import language_names
from memory.recall.service import known_languages
from tenants import context, error_texts
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action


def _label(name: str) -> Any:
    return capfirst(Agent._meta.get_field(name).verbose_name)  # type: ignore[union-attr]


def _help(name: str) -> Any:
    return Agent._meta.get_field(name).help_text  # type: ignore[union-attr]  # none is a relation


class PhrasesField(SimpleArrayField):
    """A column with phrases, one a line. Blank lines are dropped."""

    def __init__(self, column: str) -> None:
        super().__init__(
            forms.CharField(max_length=200, required=False),
            label=_label(column),
            delimiter="\n",
            required=False,
            widget=widgets.UnfoldAdminTextareaWidget,
            help_text=format_lazy("{} {}", _help(column), _("One a line.")),
        )

    def clean(self, value: Any) -> list[str]:
        return [phrase for phrase in super().clean(value) if phrase]


class AgentForm(error_texts.TranslatedModelForm):
    """Tools and agents to choose from, and phrases one a line."""

    tools = forms.MultipleChoiceField(
        label=_label("tools"),
        choices=[(name, name) for name in sorted(tool_catalog.TOOLS)],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_help("tools"),
    )
    language_models = PhrasesField("language_models")
    escalate_on = PhrasesField("escalate_on")
    hands_to = forms.TypedMultipleChoiceField(
        label=_label("hands_to"),
        coerce=UUID,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_help("hands_to"),
    )
    hand_over_on = forms.CharField(
        label=_label("hand_over_on"),
        required=False,
        widget=widgets.UnfoldAdminTextareaWidget,
        help_text=_(
            "Words or phrases in a message that hand the conversation to another agent, one per"
            " line with that agent's name: “invoice: billing”."
        ),
    )
    hand_back_on = PhrasesField("hand_back_on")
    note = forms.CharField(
        label=_("Note of the change"),
        required=False,
        max_length=2000,
        widget=widgets.UnfoldAdminTextInputWidget,
        help_text=_("For the list of versions: the change and its reason."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = agent_names()
        chosen: Any = self.fields["hands_to"]
        chosen.choices = [(str(pk), name) for pk, name in names.items() if pk != self.instance.pk]
        self.initial["hand_over_on"] = "\n".join(
            f"{phrase}: {names.get(UUID(to), to)}"
            for phrase, to in self.instance.hand_over_on.items()
        )

    def clean(self) -> dict[str, Any] | None:
        """Use plain line ends; clear thresholds that stay when another preset is chosen."""
        for name in PROMPT_FIELDS & self.cleaned_data.keys():
            self.cleaned_data[name] = self.cleaned_data[name].replace("\r\n", "\n")
        thresholds = {"recall_open_at", "recall_keep_at"}
        if "recall_preset" in self.changed_data and not thresholds & {*self.changed_data}:
            self.cleaned_data |= dict.fromkeys(thresholds)
        return super().clean()

    def clean_hand_over_on(self) -> dict[str, str]:
        """The agent's id for each phrase."""
        rules = {}
        for line in filter(str.strip, self.cleaned_data["hand_over_on"].splitlines()):
            phrase, colon, name = line.rpartition(":")
            if not colon or not phrase.strip():
                raise forms.ValidationError(
                    gettext("“%(line)s” is not a phrase, a colon and an agent.") % {"line": line}
                )
            try:
                rules[phrase.strip()] = str(agents.find_agent(name.strip()).pk)
            except exceptions.AgentNotFound as error:
                raise forms.ValidationError(str(error)) from error
        return rules


@admin.register(Agent, site=tenant_site)
class AgentAdmin(access.AuditedAdmin):
    """Agents, with their settings."""

    form = AgentForm
    # Memories belong to an agent. An agent is made inactive instead.
    refused = frozenset({"delete"})
    list_display = ("name", "model_tier", "model", "recall_mode", "is_active", "created_at")
    list_filter = ("is_active", "model_tier", "recall_mode")
    search_fields = ("name", "identity", "persona")
    readonly_fields = ("id", "created_at", "trial", "versions", "known_languages")
    groups = (
        (None, ("name", "is_active", "note", "trial", "versions", "id", "created_at")),
        (_("Prompt"), ("system_prompt", "identity", "persona")),
        (
            _("Language model"),
            (
                *("language_models", "model_tier", "model", "max_completion_tokens"),
                *("max_tokens_per_day", "reranker"),
            ),
        ),
        (_("Applications"), ("accepts_client_instructions",)),
        (_("Tools and people"), ("tools", "escalate_on", "escalate_after_failures")),
        (_("Other agents"), ("hands_to", "hand_over_on", "hand_back_on")),
        (
            _("Facts"),
            (
                *("extracts_facts", "extraction_model", "extraction_idle_seconds"),
                *("extraction_batch_size", "extraction_max_tokens_per_day"),
                *("fact_review", "fact_review_by_slot"),
            ),
        ),
        (
            _("Recall"),
            (
                *("conversation_pause_hours", "recall_mode", "recall_top_k", "recall_neighbours"),
                *("recall_gate", "recall_preset", "language", "known_languages", "time_zone"),
                *("recall_open_at", "recall_keep_at", "recall_weights"),
            ),
        ),
    )

    def get_fieldsets(self, request: HttpRequest, obj: Agent | None = None) -> Any:
        """Return the groups of fields: editable ones of a new agent, names of agents to readers."""
        left_out = self.readonly_fields if obj is None else ()
        is_reader = obj is not None and not self.has_change_permission(request, obj)
        shown = {"hands_to": "other_agents", "hand_over_on": "hand_over_rules"} if is_reader else {}
        return [
            (title, {"fields": [shown.get(name, name) for name in names if name not in left_out]})
            for title, names in self.groups
        ]

    def save_model(self, request: HttpRequest, obj: Agent, form: Any, change: bool) -> None:
        """Save by the service, which keeps the version."""
        note, author = form.cleaned_data["note"], access.author_of(request)
        if change:
            values = {name: getattr(obj, name) for name in form.cleaned_data if name != "note"}
            agents.update_agent(obj, author=author, note=note, **values)
            return
        names = [field.attname for field in Agent._meta.concrete_fields if field.editable]
        values = {name: getattr(obj, name) for name in names if name != "tenant_id"}
        agents.create_agent(
            tenant_id=context.required_tenant_id(), id=obj.pk, author=author, note=note, **values
        )

    @admin.display(description=_label("hands_to"))
    def other_agents(self, agent: Agent) -> str:
        """The names of the agents that it may hand a conversation to."""
        return display_value(agent.hands_to, agent_names())

    @admin.display(description=_label("hand_over_on"))
    def hand_over_rules(self, agent: Agent) -> str:
        """The phrases that hand a conversation over, with the names of the agents."""
        return display_value(agent.hand_over_on, agent_names())

    @admin.display(description=_("Languages of the embedding model"))
    def known_languages(self, agent: Agent) -> str:
        """The languages in which memories are found by their meaning; in others by their words."""
        return language_names(known_languages())

    @admin.display(description=_("Versions"))
    def versions(self, agent: Agent) -> str:
        """A link to the versions of the agent."""
        return link(gettext("See each change, and roll back"), "agent_versions", agent.pk)

    @admin.display(description=_("Try it"))
    def trial(self, agent: Agent) -> str:
        """A link to the dry runs, and a button that sends them the edited form in a new tab."""
        return format_html(
            # The first button of a form is pressed by the Enter key.
            '<button name="_save" hidden></button>{} · <button class="k-link" formaction="{}"'
            ' formtarget="_blank">{}</button>',
            link(gettext("Try it"), "try_agent", agent.pk),
            reverse("admin:try_agent", args=[agent.pk]),
            gettext("Compare the edited form, in a new tab"),
        )


PER_PAGE: Final = 20
PROMPT_FIELDS: Final = frozenset({"system_prompt", "identity", "persona"})


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the settings that differ, for agent_difference.html: texts with their words marked."""
    names = agent_names()
    # A version may have settings of an earlier or a later release.
    fields = {field.name: field for field in Agent._meta.fields}
    changed = []
    for name in after:
        if name not in before or name not in fields or before[name] == after[name]:
            continue
        field = fields[name]
        difference: dict[str, Any] = {"label": capfirst(str(field.verbose_name))}
        if name in PROMPT_FIELDS:
            difference["text"] = mark_difference(before[name], after[name])
        else:
            difference |= {
                "old": display_value(before[name], names),
                "new": display_value(after[name], names),
            }
        changed.append(difference)
    return changed


def display_value(value: Any, names: Mapping[UUID, str]) -> str:
    """Return a setting as people read it: agents by their names."""
    if value in (None, "", [], {}):
        return gettext("blank")
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    for agent_id, name in names.items():
        text = text.replace(str(agent_id), name)
    return text


@tenant_site.page("agents/<uuid:agent_id>/versions/", permission="orchestrator.view_agent")
def agent_versions(request: HttpRequest, agent_id: UUID) -> dict[str, Any]:
    """List the versions of an agent, newest first, each with its difference to the previous one."""
    agent = get_object_or_404(Agent, pk=agent_id)
    access.log_access(request, Action.LIST, "versions of an agent", agent_id=agent.pk)
    rows = AgentVersion.objects.filter(agent_id=agent.pk).order_by("-number")
    before = request.GET.get("before", "")
    if before.isdigit() and len(before) < 10:
        rows = rows.filter(number__lt=int(before))
    versions = list(rows[: PER_PAGE + 1])
    pairs = zip(versions, [*versions[1:], None], strict=False)  # an imported agent may have none
    return {
        "title": gettext("Versions of %(name)s") % {"name": agent.name},
        "agent": agent,
        "versions": [
            {
                "row": version,
                "is_current": version.settings == agents.settings_of(agent),
                "differences": differences(older.settings, version.settings) if older else [],
            }
            for version, older in list(pairs)[:PER_PAGE]
        ],
        "earlier": versions[PER_PAGE - 1].number if len(versions) > PER_PAGE else None,
    }


@tenant_site.post_page(
    "agents/<uuid:agent_id>/versions/<int:number>/restore/", permission="orchestrator.change_agent"
)
def restore_agent(request: HttpRequest, agent_id: UUID, number: int) -> HttpResponseBase:
    """Return to a version."""
    agent = get_object_or_404(Agent, pk=agent_id)
    get_object_or_404(AgentVersion, agent_id=agent.pk, number=min(number, agents.MAX_INTEGER))
    text = gettext("%(name)s has the settings of version %(number)s.")
    success = text % {"name": agent.name, "number": number}
    with show_outcome(request, success), access.logged_change(request, agent, restored=number):
        agents.restore_agent(agent, number, author=access.author_of(request))
    return redirect("admin:agent_versions", agent.pk)


class LanguageModelForm(error_texts.TranslatedModelForm):
    """The settings of a language model. Its key is entered, and never shown."""

    key = forms.CharField(
        label=_("Key"),
        required=False,
        max_length=2000,
        widget=widgets.UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text=_("The key of the server. Blank: the stored key, or none."),
    )

    class Meta:
        model = LanguageModel
        fields = (
            "name", "kind", "endpoint", "key", "model", "prompt_price", "completion_price",
            "timeout_seconds", "max_tokens_per_day", "position", "min_score", "is_active",
        )  # fmt: skip

    def full_clean(self) -> None:
        """Check the entries. A page with errors has no key: ask for it again."""
        super().full_clean()
        if self.errors and self.data.get("key"):
            self.add_error("key", gettext("Enter the key again: it is not kept after an error."))

    def clean(self) -> dict[str, Any]:
        """Check the key, which is not sent to another address."""
        values: dict[str, Any] = super().clean() or {}
        stored = LanguageModel.objects.filter(pk=self.instance.pk).first()
        key = values.get("key") or None
        language_models.check_key(key, endpoint=values.get("endpoint", ""), stored=stored)
        return values


@admin.register(LanguageModel, site=tenant_site)
class LanguageModelAdmin(access.AuditedAdmin):
    """Language models of the tenant, in the order in which agents without own ones call them."""

    form = LanguageModelForm
    list_display = (
        "name", "kind", "position", "endpoint", "model", "has_key", "is_active", "created_at",
    )  # fmt: skip
    list_filter = ("kind", "is_active")
    search_fields = ("name", "endpoint", "model")
    readonly_fields = ("has_key", "test")
    actions = None  # models are deleted one by one: those that agents name stay

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

    @admin.display(description=_("Key"), boolean=True)
    def has_key(self, model: LanguageModel) -> bool:
        """Whether it has a key."""
        return bool(model.secret_key)

    @admin.display(description=_("Test"))
    def test(self, model: LanguageModel) -> str:
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
    access.log_row_access(request, Action.TRY, model)
    with show_outcome(request):
        test = dry_runs.measure_language_model(model)
        if test.problem:
            messages.error(request, error_texts.translate_error(test.problem))
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
