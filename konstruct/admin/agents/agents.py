"""Agents: their prompt, language model and recall settings, and their versions."""

import json
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import admin
from django.contrib.postgres.forms import SimpleArrayField
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst, format_lazy
from django.utils.translation import gettext, gettext_lazy as _
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from konstruct.admin.access import AuditedAdmin, author_of, log_access, log_row_access
from konstruct.admin.lists import agent_names, link
from konstruct.admin.memory.marking import mark_difference
from konstruct.admin.pages import PageForm, show_outcome
from konstruct.orchestrator.agents import (
    MAX_INTEGER,
    create_agent,
    find_agent,
    restore_agent,
    settings_of,
    update_agent,
)
from konstruct.orchestrator.exceptions import AgentNotFound
from konstruct.orchestrator.extraction import queue
from konstruct.orchestrator.models import Agent, AgentVersion
from konstruct.orchestrator.tool_catalog import TOOLS
from konstruct.templatetags.texts import language_names
from memory.recall.service import known_languages
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.changes import row_state
from tenants.audit.models import Action
from tenants.context import required_tenant_id


def _label(name: str) -> Any:
    return capfirst(Agent._meta.get_field(name).verbose_name)  # type: ignore[union-attr]


def _help(name: str) -> Any:
    return Agent._meta.get_field(name).help_text  # type: ignore[union-attr]  # none is a relation


def _fieldset(title: Any, description: Any, *fields: str, classes: tuple[str, ...] = ()) -> Any:
    return title, {"fields": fields, "description": description, "classes": classes}


class PhrasesField(SimpleArrayField):
    """A column with phrases, one a line. Blank lines are dropped."""

    def __init__(self, column: str) -> None:
        super().__init__(
            forms.CharField(max_length=200, required=False),
            label=_label(column),
            delimiter="\n",
            required=False,
            widget=UnfoldAdminTextareaWidget,
            help_text=format_lazy("{} {}", _help(column), _("One a line.")),
        )

    def clean(self, value: Any) -> list[str]:
        return [phrase for phrase in super().clean(value) if phrase]


class AgentForm(forms.ModelForm):
    """Tools and agents to choose from, and phrases one a line."""

    tools = forms.MultipleChoiceField(
        label=_label("tools"),
        choices=[(name, name) for name in sorted(TOOLS)],
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
        widget=UnfoldAdminTextareaWidget,
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
        widget=UnfoldAdminTextInputWidget,
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
                rules[phrase.strip()] = str(find_agent(name.strip()).pk)
            except AgentNotFound as error:
                raise forms.ValidationError(str(error)) from error
        return rules


@admin.register(Agent, site=tenant_site)
class AgentAdmin(AuditedAdmin):
    """Agents, with their settings."""

    form = AgentForm
    list_display = ("name", "model_tier", "model", "recall_mode", "is_active", "created_at")
    list_filter = ("is_active", "model_tier", "recall_mode")
    search_fields = ("name", "identity", "persona")
    readonly_fields = ("id", "created_at", "trial", "versions", "extraction", "known_languages")
    fieldsets = (
        (None, {"fields": ("name", "is_active", "note", "trial", "versions", "id", "created_at")}),
        _fieldset(
            _("Prompt"),
            _(
                "Every prompt opens with these, in this order, and with a sentence"
                " that has the agent say that it is an AI when asked."
            ),
            *("system_prompt", "identity", "persona"),
        ),
        _fieldset(
            _("Language model"),
            _("The tier also decides how long a prompt may become."),
            *("language_models", "model_tier", "model", "max_completion_tokens", "reranker"),
        ),
        _fieldset(
            _("Applications"),
            _("Settings of programs that use the OpenAI interface."),
            "accepts_client_instructions",
        ),
        _fieldset(
            _("Tools and people"),
            _("Tools that need the user's consent, and when a person answers instead."),
            *("tools", "escalate_on", "escalate_after_failures"),
        ),
        _fieldset(
            _("Other agents"),
            _(
                "When another agent answers a conversation instead, and when that"
                " ends. A circle of agents ends at a person."
            ),
            *("hands_to", "hand_over_on", "hand_back_on"),
        ),
        _fieldset(
            _("Facts"),
            _(
                "Facts are extracted from conversations that are quiet. Facts that"
                " need a review wait in “Facts to review”, and agents do not use them before."
            ),
            *("extracts_facts", "extraction", "extraction_model", "extraction_idle_seconds"),
            *("extraction_batch_size", "extraction_max_tokens_per_day"),
            *("fact_review", "fact_review_by_slot"),
        ),
        _fieldset(
            _("Recall"),
            _(
                "A blank field has the measured default, which suits most agents."
                " The page “Memories” shows the effect of a preset at once."
            ),
            *("conversation_pause_hours", "recall_mode", "recall_top_k", "recall_neighbours"),
            *("recall_gate", "recall_preset", "language", "known_languages", "time_zone"),
        ),
        _fieldset(
            _("Own thresholds and weights of recall"),
            _("Thresholds of its own replace those of the preset."),
            *("recall_open_at", "recall_keep_at", "recall_weights"),
            classes=("collapse",),
        ),
    )

    def get_fieldsets(self, request: HttpRequest, obj: Agent | None = None) -> Any:
        """Return the fieldsets: of a new agent what is entered, for readers names of agents."""
        left_out = self.readonly_fields if obj is None else ()
        is_reader = obj is not None and not self.has_change_permission(request, obj)
        shown = {"hands_to": "other_agents", "hand_over_on": "hand_over_rules"} if is_reader else {}
        fieldsets = []
        for title, options in self.fieldsets:
            names = [shown.get(name, name) for name in options["fields"] if name not in left_out]
            fieldsets.append((title, {**options, "fields": names}))
        return fieldsets

    def save_model(self, request: HttpRequest, obj: Agent, form: Any, change: bool) -> None:
        """Save by the service, which keeps the version."""
        note, author = form.cleaned_data["note"], author_of(request)
        if change:
            values = {name: getattr(obj, name) for name in form.cleaned_data if name != "note"}
            update_agent(obj, author=author, note=note, **values)
            return
        names = [field.attname for field in Agent._meta.concrete_fields if field.editable]
        values = {name: getattr(obj, name) for name in names if name != "tenant_id"}
        create_agent(tenant_id=required_tenant_id(), id=obj.pk, author=author, note=note, **values)

    def has_delete_permission(self, request: HttpRequest, obj: Agent | None = None) -> bool:
        """Refuse: memories belong to an agent. An agent is made inactive instead."""
        return False

    @display(description=_label("hands_to"))
    def other_agents(self, agent: Agent) -> str:
        """The names of the agents that it may hand a conversation to."""
        return display_value(agent.hands_to, agent_names())

    @display(description=_label("hand_over_on"))
    def hand_over_rules(self, agent: Agent) -> str:
        """The phrases that hand a conversation over, with the names of the agents."""
        return display_value(agent.hand_over_on, agent_names())

    @display(description=_("Languages of the embedding model"))
    def known_languages(self, agent: Agent) -> str:
        """The languages in which memories are found by their meaning; in others by their words."""
        return language_names(known_languages())

    @display(description=_("Versions"))
    def versions(self, agent: Agent) -> SafeString:
        """A link to the versions of the agent."""
        return link(gettext("See each change, and roll back"), "agent_versions", agent.pk)

    @display(description=_("Try it"))
    def trial(self, agent: Agent) -> SafeString:
        """A link to the dry runs, and a button that sends them the edited form in a new tab."""
        return format_html(
            # The first button of a form is pressed by the Enter key.
            '<button name="_save" hidden></button>{} · <button class="k-link" formaction="{}"'
            ' formtarget="_blank">{}</button>',
            link(gettext("Try it"), "try_agent", agent.pk),
            reverse("admin:try_agent", args=[agent.pk]),
            gettext("Compare the edited form, in a new tab"),
        )

    @display(description=_("Conversations"))
    def extraction(self, agent: Agent) -> SafeString:
        """Return the numbers of processed, queued and failed conversations, with a link to them."""
        counts = queue.counts(agent.pk)
        processed = counts["conversations"] - counts["queued"] - counts["failed"]
        text = gettext("%(processed)s processed, %(queued)s queued, %(failed)s failed")
        return link(
            text % {**counts, "processed": processed},
            "orchestrator_extractioncursor_changelist",
            query={"agent": agent.pk},
        )


VIEW: Final = "orchestrator.view_agent"
CHANGE: Final = "orchestrator.change_agent"
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


@tenant_site.page("agents/<uuid:agent_id>/versions/", permission=VIEW)
def agent_versions(request: HttpRequest, agent_id: UUID) -> HttpResponseBase:
    """List the versions of an agent, newest first, each with its difference to the previous one."""
    agent = get_object_or_404(Agent, pk=agent_id)
    log_access(request, Action.LIST, "versions of an agent", agent_id=agent.pk)
    rows = AgentVersion.objects.filter(agent_id=agent.pk).order_by("-number")
    before = request.GET.get("before", "")
    if before.isdigit() and len(before) < 10:
        rows = rows.filter(number__lt=int(before))
    versions = list(rows[: PER_PAGE + 1])
    pairs = zip(versions, [*versions[1:], None], strict=False)  # an imported agent may have none
    return tenant_site.render(
        request,
        "konstruct/agent_versions.html",
        title=gettext("Versions of %(name)s") % {"name": agent.name},
        agent=agent,
        versions=[
            {
                "row": version,
                "is_current": version.settings == settings_of(agent),
                "differences": differences(older.settings, version.settings) if older else [],
            }
            for version, older in list(pairs)[:PER_PAGE]
        ],
        earlier=versions[PER_PAGE - 1].number if len(versions) > PER_PAGE else None,
    )


class NoteForm(PageForm):
    """The note of a version."""

    note = forms.CharField(
        label=_("Note"),
        required=False,
        max_length=2000,
        help_text=_("Why the agent returns to this version."),
    )


@tenant_site.page(
    "agents/<uuid:agent_id>/versions/<int:number>/restore/",
    name="restore_agent",
    permission=CHANGE,
)
def restore(request: HttpRequest, agent_id: UUID, number: int) -> HttpResponseBase:
    """Return to a version, after its difference to the agent was shown."""
    agent = get_object_or_404(Agent, pk=agent_id)
    version = get_object_or_404(AgentVersion, agent_id=agent.pk, number=min(number, MAX_INTEGER))
    form = NoteForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        before, text = row_state(agent), gettext("%(name)s has the settings of version %(number)s.")
        success = text % {"name": agent.name, "number": number}
        with show_outcome(request, success, form=form), transaction.atomic():
            restore_agent(agent, number, author=author_of(request), note=form.cleaned_data["note"])
            log_row_access(
                request, Action.EDIT, agent, before=before, after=row_state(agent), restored=number
            )
        if form.is_valid():
            return redirect("admin:agent_versions", agent.pk)
        agent.refresh_from_db()
    log_row_access(request, Action.VIEW, version)
    return tenant_site.render(
        request,
        "konstruct/restore_agent.html",
        title=gettext("Return to version %(number)s of %(name)s")
        % {"number": number, "name": agent.name},
        agent=agent,
        differences=differences(settings_of(agent), version.settings),
        form=form,
    )
