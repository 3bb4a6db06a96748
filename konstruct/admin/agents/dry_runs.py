"""Dry runs of an agent: several turns as a person, beside a draft of the agent. Nothing is stored.

The conversation is in the form, signed. A draft is an agent that is not saved.
"""

from collections.abc import Mapping
from copy import copy
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.validators import MaxLengthValidator
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from konstruct.admin.access import author_of, log_access, log_row_access
from konstruct.admin.agents.agents import AgentForm
from konstruct.admin.memory.recall_events import trace_context
from konstruct.admin.memory.sources import with_sources
from konstruct.admin.pages import PageForm
from konstruct.admin.query_parameters import as_user_id
from konstruct.orchestrator.agents import update_agent
from konstruct.orchestrator.exceptions import TrialUnreadable
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.pipeline.dry_run import DryReply
from konstruct.orchestrator.pipeline.trials import (
    DRAFT_FIELDS,
    MAX_TRIAL_CHARACTERS,
    MODEL_FIELDS,
    PROMPT_FIELDS,
    RECALL_FIELDS,
    RULE_FIELDS,
    Trial,
    changes_of,
)
from memory.browse.people import list_users, names_of
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.changes import row_state
from tenants.audit.models import Action
from tenants.exceptions import KonstructError

TRY: Final = "audit.try_agent"
CHANGE: Final = "orchestrator.change_agent"
VIEW_PEOPLE: Final = "memory.view_scope"
MAX_MESSAGE_CHARACTERS: Final = 32_768
MAX_FOUND: Final = 20


class MessageForm(PageForm):
    """The next message, and the conversation before it."""

    content = forms.CharField(
        label=_("Message"),
        validators=[MaxLengthValidator(MAX_MESSAGE_CHARACTERS)],
        widget=forms.Textarea(attrs={"rows": 3}),
    )


class DraftForm(AgentForm):
    """The instructions and settings of an agent that is not saved."""

    class Meta:
        model = Agent
        fields = DRAFT_FIELDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, prefix="draft", **kwargs)
        for field in self.fields.values():
            widget = field.widget
            if isinstance(widget, forms.CheckboxInput | forms.CheckboxSelectMultiple):
                continue
            widget.attrs["class"] = "k-input"
            if isinstance(widget, forms.Textarea):
                widget.attrs["rows"] = 3

    @property
    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        """The fields under their headings."""
        titles = {
            gettext("Instructions"): PROMPT_FIELDS,
            gettext("Language model"): MODEL_FIELDS,
            gettext("Tools, people and other agents"): RULE_FIELDS,
            gettext("Recall"): RECALL_FIELDS,
        }
        return [(title, [self[name] for name in names]) for title, names in titles.items()]


@tenant_site.page("agents/<uuid:agent_id>/try/", name="try_agent", permission=TRY)
def try_agent(request: HttpRequest, agent_id: UUID) -> HttpResponseBase:
    """Answer messages as a channel would, by the agent and by a draft of it."""
    live = get_object_or_404(Agent, pk=agent_id)
    trial = _read_trial(request, live)
    user_id = trial.user_id or ""
    has_draft = "draft-model_tier" in request.POST
    draft_form = DraftForm(request.POST if has_draft else None, instance=copy(live))
    is_draft_valid = not has_draft or draft_form.is_valid()
    draft = draft_form.instance
    changes = changes_of(draft, live) if has_draft and is_draft_valid else {}
    if request.method == "POST" and request.POST.get("do") == "save" and is_draft_valid:
        problem = _save(request, live, changes, draft_form.cleaned_data["note"])
        if not problem:
            return redirect(_try_url(live, user_id))
        draft_form.add_error(None, problem)
    is_asked = request.method == "POST" and request.POST.get("do", "ask") == "ask"
    form = MessageForm(request.POST if is_asked else None)
    replies: dict[str, DryReply] = {}
    if request.method == "POST" and is_draft_valid and form.is_valid():
        content = form.cleaned_data["content"]
        log_row_access(request, Action.TRY, live, user_id=user_id or None, query=content)
        try:
            trial, replies = trial.ask(content, live, draft if changes else None)
        except KonstructError as error:
            form.add_error(None, str(error))
        else:
            form = MessageForm()
    state = trial.sign(live, _author(request))
    find = as_user_id(request.GET.get("find"))
    return tenant_site.render(
        request,
        "konstruct/try_agent.html",
        title=gettext("Try %(name)s") % {"name": live.name},
        agent=live,
        form=form,
        draft_form=draft_form,
        changes=changes,
        is_draft_open=not is_draft_valid,
        state=state,
        is_full=len(state) > MAX_TRIAL_CHARACTERS or trial.is_full,
        sides=[
            {
                "title": gettext("The draft") if name == "draft" else gettext("The agent as it is"),
                "thread": thread,
                "why": _sources(replies.get(name), user_id),
            }
            for name, thread in trial.threads.items()
        ],
        user_id=user_id,
        names=names_of([user_id]) if user_id else [],
        find=find,
        found=_people(request, live, find),
        may_find=request.user.has_perm(VIEW_PEOPLE),
        may_save=request.user.has_perm(CHANGE),
        start_over=_try_url(live, user_id),
        is_fullwidth=1,
    )


def _save(request: HttpRequest, live: Agent, changes: Mapping[str, Any], version_note: str) -> str:
    """Write the draft as the agent; return the problem, if there is one."""
    if not request.user.has_perm(CHANGE):
        raise PermissionDenied
    if not changes:
        return gettext("The draft does not differ from the agent.")
    before = row_state(live)
    try:
        with transaction.atomic():
            update_agent(live, author=author_of(request), note=version_note, **changes)
            log_row_access(request, Action.EDIT, live, before=before, after=row_state(live))
    except KonstructError as error:
        return str(error)
    messages.success(request, gettext("The draft is the agent now."))
    return ""


def _people(request: HttpRequest, live: Agent, find: str) -> list[dict[str, Any]]:
    if not find or not request.user.has_perm(VIEW_PEOPLE):
        return []
    log_access(request, Action.SEARCH, "people", query=find)
    return [
        {
            "user_id": person.user_id,
            "name": person.name or ", ".join(person.names[:1]),
            "address": _try_url(live, person.user_id),
        }
        for person in list_users(containing=find, limit=MAX_FOUND)
    ]


def _sources(reply: DryReply | None, user_id: str) -> dict[str, Any] | None:
    if reply is None or reply.prompt is None:
        return None
    agent_id = UUID(reply.exchange.agent_id)
    return with_sources(trace_context(reply.prompt.trace()), agent_id=agent_id, user_id=user_id)


def _try_url(agent: Agent, user_id: str) -> str:
    query = {"user": user_id} if user_id else None
    return reverse("admin:try_agent", args=[agent.pk], query=query)


# --- The conversation in the form -----------------------------------------------------------------


def _read_trial(request: HttpRequest, agent: Agent) -> Trial:
    """Return the conversation of the form, or a new one."""
    if "state" in request.POST:
        try:
            return Trial.read(request.POST["state"], agent, _author(request))
        except TrialUnreadable:
            messages.warning(request, gettext("The conversation has ended. This is a new one."))
    user_id = request.POST.get("user_id") or request.GET.get("user")
    return Trial(as_user_id(user_id) or None)


def _author(request: HttpRequest) -> str:
    return f"person-{request.user.pk}"
