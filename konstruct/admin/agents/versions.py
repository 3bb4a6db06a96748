"""Versions of an agent: each change with its difference, and the return to an earlier one."""

import json
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from konstruct.admin.access import author_of, log_access, log_row_access
from konstruct.admin.lists import agent_names
from konstruct.admin.memory.marking import mark_difference
from konstruct.admin.pages import PageForm, show_outcome
from konstruct.orchestrator.agents import MAX_INTEGER, restore_agent, settings_of
from konstruct.orchestrator.models import Agent, AgentVersion
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.changes import row_state
from tenants.audit.models import Action

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


@tenant_site.page("agents/<uuid:agent_id>/versions/", name="agent_versions", permission=VIEW)
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
