"""Dry runs of an agent: several turns as a person, beside a draft of the agent. Nothing is stored.

The conversation is in the form, signed. A draft is an agent that is not saved.
"""

from collections.abc import Mapping
from copy import copy
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.core.validators import MaxLengthValidator
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from konstruct.admin.access import author_of, note, note_row
from konstruct.admin.agents.agents import AgentForm
from konstruct.admin.choosing import as_user_id
from konstruct.admin.memory.recall_events import why_from
from konstruct.admin.memory.sources import with_sources
from konstruct.admin.pages import PageForm
from konstruct.orchestrator.agents import update_agent
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.pipeline.dry_run import DryReply, DryThread, dry_run
from memory.browse.people import known_users, names_of
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.changes import row_state
from tenants.audit.models import Action
from tenants.context import required_tenant_id
from tenants.exceptions import KonstructError

TRY: Final = "audit.try_agent"
CHANGE: Final = "orchestrator.change_agent"
SEE_PEOPLE: Final = "memory.view_scope"
MAX_MESSAGE_CHARACTERS: Final = 32_768
MAX_FOUND: Final = 20
# The form has the conversation, and the next message needs room beside it.
MAX_STATE_CHARACTERS: Final = 1_000_000
MAX_AGE_SECONDS: Final = 24 * 3600

PROMPT_FIELDS: Final = ("system_prompt", "identity", "persona")
MODEL_FIELDS: Final = ("model_tier", "model", "max_completion_tokens")
RULE_FIELDS: Final = (
    *("tools", "escalate_on", "hands_to", "hand_over_on", "hand_back_on"),
)  # fmt: skip
RECALL_FIELDS: Final = (
    *("recall_mode", "recall_top_k", "recall_neighbours", "recall_gate", "recall_preset"),
    *("recall_open_at", "recall_keep_at", "recall_weights"),
)
DRAFT_FIELDS: Final = (*PROMPT_FIELDS, *MODEL_FIELDS, *RULE_FIELDS, *RECALL_FIELDS)


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
            "Instructions": PROMPT_FIELDS,
            "Language model": MODEL_FIELDS,
            "Tools, people and other agents": RULE_FIELDS,
            "Recall": RECALL_FIELDS,
        }
        return [(title, [self[name] for name in names]) for title, names in titles.items()]


def changes_of(draft: Agent, live: Agent) -> dict[str, Any]:
    """Return the values of the draft that differ from the agent's; line ends do not count."""
    return {
        name: getattr(draft, name)
        for name in DRAFT_FIELDS
        if _comparable(getattr(draft, name)) != _comparable(getattr(live, name))
    }


def _comparable(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\r\n", "\n").strip()
    return sorted(value, key=str) if isinstance(value, list) else value


@tenant_site.page("agents/<uuid:agent_id>/try/", name="try_agent", permission=TRY)
def try_agent(request: HttpRequest, agent_id: UUID) -> HttpResponseBase:
    """Answer messages as a channel would, by the agent and by a draft of it."""
    live = get_object_or_404(Agent, pk=agent_id)
    threads, user_id = _state_of(request, live)
    has_draft = "draft-model_tier" in request.POST
    draft_form = DraftForm(request.POST if has_draft else None, instance=copy(live))
    is_draft_valid = not has_draft or draft_form.is_valid()
    draft = draft_form.instance
    changes = changes_of(draft, live) if has_draft and is_draft_valid else {}
    if request.method == "POST" and request.POST.get("do") == "save" and is_draft_valid:
        problem = _save(request, live, changes, draft_form.cleaned_data["note"])
        if not problem:
            return redirect(_address(live, user_id))
        draft_form.add_error(None, problem)
    form = MessageForm(request.POST if request.POST.get("do", "ask") == "ask" else None)
    replies: dict[str, DryReply] = {}
    if request.method == "POST" and is_draft_valid and form.is_valid():
        content = form.cleaned_data["content"]
        note_row(request, Action.TRY, live, user_id=user_id or None, query=content)
        try:
            replies = _ask(threads, content, {"live": live, "draft": draft}, user_id, changes)
        except KonstructError as error:
            form.add_error(None, str(error))
        else:
            threads = {name: reply.thread for name, reply in replies.items()}
            form = MessageForm()
    state = _signed(request, live, threads, user_id)
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
        is_full=len(state) > MAX_STATE_CHARACTERS
        or any(thread.is_full for thread in threads.values()),
        sides=[
            {
                "title": gettext("The draft") if name == "draft" else gettext("The agent as it is"),
                "thread": thread,
                "why": _why(replies.get(name), user_id),
            }
            for name, thread in threads.items()
        ],
        user_id=user_id,
        names=names_of([user_id]) if user_id else [],
        find=find,
        found=_people(request, live, find),
        may_find=request.user.has_perm(SEE_PEOPLE),
        may_save=request.user.has_perm(CHANGE),
        start_over=_address(live, user_id),
        is_fullwidth=1,
    )


def _ask(
    threads: Mapping[str, DryThread],
    content: str,
    agents: Mapping[str, Agent],
    user_id: str,
    changes: Mapping[str, Any],
) -> dict[str, DryReply]:
    """Send the message to the agent, and to a draft that differs from it.

    A draft that is made during the conversation goes on from what the agent has said.
    """
    live = threads.get("live", DryThread())
    before = {"live": live}
    if changes:
        before["draft"] = threads.get("draft", live)
    return {
        name: dry_run(thread, content, agents[name], user_id=user_id or None)
        for name, thread in before.items()
    }


def _save(request: HttpRequest, live: Agent, changes: Mapping[str, Any], note: str) -> str:
    """Write the draft as the agent; return the problem, if there is one."""
    if not request.user.has_perm(CHANGE):
        raise PermissionDenied
    if not changes:
        return gettext("The draft does not differ from the agent.")
    was = row_state(live)
    try:
        with transaction.atomic():
            update_agent(live, author=author_of(request), note=note, **changes)
            note_row(request, Action.EDIT, live, before=was, after=row_state(live))
    except KonstructError as error:
        return str(error)
    messages.success(request, gettext("The draft is the agent now."))
    return ""


def _people(request: HttpRequest, live: Agent, find: str) -> list[dict[str, Any]]:
    if not find or not request.user.has_perm(SEE_PEOPLE):
        return []
    note(request, Action.SEARCH, "people", query=find)
    return [
        {
            "user_id": each.user_id,
            "name": each.name or ", ".join(each.names[:1]),
            "address": _address(live, each.user_id),
        }
        for each in known_users(containing=find, limit=MAX_FOUND)
    ]


def _why(reply: DryReply | None, user_id: str) -> dict[str, Any] | None:
    if reply is None or reply.prompt is None:
        return None
    agent_id = UUID(reply.exchange.agent_id)
    return with_sources(why_from(reply.prompt.trace()), agent_id=agent_id, user_id=user_id)


def _address(agent: Agent, user_id: str) -> str:
    query = {"user": user_id} if user_id else None
    return reverse("admin:try_agent", args=[agent.pk], query=query)


# --- The conversation in the form -----------------------------------------------------------------


def _salt(request: HttpRequest, agent: Agent) -> str:
    return f"dry-run:{required_tenant_id()}:{agent.pk}:{request.user.pk}"


def _signed(
    request: HttpRequest, agent: Agent, threads: Mapping[str, DryThread], user_id: str
) -> str:
    document = {
        "user": user_id,
        "threads": {name: thread.as_dict() for name, thread in threads.items()},
    }
    return signing.dumps(document, salt=_salt(request, agent), compress=True)


def _state_of(request: HttpRequest, agent: Agent) -> tuple[dict[str, DryThread], str]:
    """Return the conversations of the form, and the person as whom they are held."""
    if request.method != "POST" or "state" not in request.POST:
        given = request.POST.get("user_id") or request.GET.get("user")
        return {"live": DryThread()}, as_user_id(given)
    try:
        document = signing.loads(
            request.POST["state"], salt=_salt(request, agent), max_age=MAX_AGE_SECONDS
        )
    except signing.BadSignature:
        messages.warning(request, gettext("The conversation has ended. This is a new one."))
        return {"live": DryThread()}, as_user_id(request.GET.get("user"))
    threads = {name: DryThread.of(each) for name, each in document["threads"].items()}
    return threads, document["user"]
