"""The page "Memories": recall with other parameters, two policies compared, the API request."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, Final

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from konstruct.admin.memory.marking import highlight
from konstruct.admin.memory.recall_events import left_out_context, memory_context
from konstruct.admin.pages import PageForm
from konstruct.admin.query_parameters import AgentAndUser
from konstruct.orchestrator.models.agents import recall_policy
from memory.context.search import SearchResult, search_memory
from memory.exceptions import InvalidArgument
from memory.recall.policy import MAX_NEIGHBOURS, MAX_TOP_K, MODES, PRESETS, RecallPolicy
from tenants.context import required_tenant_id

MESSAGES, FACTS = KINDS = ("messages", "facts")
# The default number of facts, as in the API.
DEFAULT_FACTS: Final = 10
# Parameters that the API does not have.
LOCAL_PARAMETERS: Final = ("open_at", "keep_at", "neighbours")
NOT_IN_THE_API: Final = _(
    "The API has no parameter for thresholds and neighbours: the agent has them."
)


def _choice(names: Sequence[str], label: Any) -> Any:
    return forms.ChoiceField(
        label=label,
        choices=[("", _("the agent's")), *((name, _(name)) for name in names)],
        required=False,
    )


def _number(field: Any, lowest: float, highest: float, step: str, label: Any) -> Any:
    return field(
        label=label,
        required=False,
        min_value=lowest,
        max_value=highest,
        widget=forms.NumberInput(attrs={"step": step, "placeholder": _("the agent's")}),
    )


class PolicyForm(PageForm):
    """The parameters of a recall policy. A blank one has the agent's value."""

    preset = _choice(list(PRESETS), _("Preset"))
    mode = _choice(MODES, _("Mode"))
    gate = forms.ChoiceField(
        label=_("Gate"),
        choices=[("", _("the agent's")), ("true", _("on")), ("false", _("off"))],
        required=False,
    )
    top_k = _number(forms.IntegerField, 1, MAX_TOP_K, "1", _("Number"))
    open_at = _number(forms.FloatField, 0, 1, "any", _("Best at least"))
    keep_at = _number(forms.FloatField, 0, 1, "any", _("Each at least"))
    neighbours = _number(forms.IntegerField, 0, MAX_NEIGHBOURS, "1", _("Neighbours"))

    @property
    def given(self) -> dict[str, Any]:
        """The values that are not blank."""
        values = {
            name: value for name, value in self.cleaned_data.items() if value not in ("", None)
        }
        if "gate" in values:
            values["gate"] = values["gate"] == "true"
        return values

    def policy(self, agent_policy: RecallPolicy) -> RecallPolicy:
        """Return the agent's policy with these values. Raises InvalidArgument."""
        given = self.given
        preset = given.pop("preset", None)
        policy = agent_policy if preset is None else agent_policy.with_preset(preset)
        return replace(policy, **given)


class QuestionForm(PageForm):
    """The kinds of memories to search, and the time of the recall."""

    at = forms.DateTimeField(
        label=_("As of"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}),
        help_text=_("Only messages up to this time."),
    )
    kinds = forms.MultipleChoiceField(
        label=_("Kinds"),
        choices=[(MESSAGES, _("messages")), (FACTS, _("facts"))],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None: both."),
    )


def run_recall(
    target: AgentAndUser,
    query: str,
    form: PolicyForm,
    *,
    kinds: Sequence[str],
    at: datetime | None,
) -> dict[str, Any]:
    """Return the recall with a policy, for recalled.html; or the error of the policy."""
    try:
        policy = form.policy(recall_policy(target.agent))
    except InvalidArgument as error:
        return {"problem": str(error), "hits": [], "cut": [], "facts": []}
    found: SearchResult = search_memory(
        required_tenant_id(),
        target.user_id,
        query,
        agent_id=target.agent.pk,
        policy=policy if MESSAGES in kinds else None,
        facts=form.given.get("top_k", DEFAULT_FACTS) if FACTS in kinds else 0,
        gate=policy.gate,
        shared=True,
        at=at,
    )
    result = found.messages
    authors = {"user_id": target.user_id, "agent_name": target.agent.name}
    return {
        "result": result,
        "policy": policy,
        "hits": [
            {
                **memory_context(asdict(hit), asdict(hit)),
                **authors,
                "highlighted": highlight(hit.content, query),
                "neighbours": True,
            }
            for hit in (result.hits if result else ())
        ],
        "cut": [
            {**memory, **authors}
            for memory in (left_out_context(map(asdict, result.cut)) if result else ())
        ],
        "facts": [
            {"memory_id": str(fact.pk), "content": fact.content, "score": fact.score}
            for fact in found.facts or ()
        ],
    }


def mark_differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
    """Mark memories that only one of two results has, and different ranks."""
    for result, other in ((first, second), (second, first)):
        for kind, key in (("hits", "message_id"), ("facts", "memory_id")):
            ranks = {memory[key]: rank for rank, memory in enumerate(other[kind], start=1)}
            for rank, memory in enumerate(result[kind], start=1):
                other_rank = ranks.get(memory[key])
                if other_rank is None:
                    memory["difference"] = gettext("only here")
                elif other_rank != rank:
                    memory["difference"] = gettext("place %(place)s, there %(there)s") % {
                        "place": rank,
                        "there": other_rank,
                    }


def request_body(
    target: AgentAndUser, query: str, form: PolicyForm, *, kinds: Sequence[str], at: datetime | None
) -> dict[str, Any]:
    """Return the body of the same search by the API."""
    given = {name: value for name, value in form.given.items() if name not in LOCAL_PARAMETERS}
    body = {"agent": target.agent.name, "user_id": target.user_id, "query": query, **given}
    body["include"] = list(kinds)
    return body if at is None else {**body, "at": at.isoformat()}


def curl_command(address: str, body: Mapping[str, Any]) -> str:
    """Return the request as a command. The key is a variable of the shell, never a real one."""
    document = shlex.quote(json.dumps(body, ensure_ascii=False))
    return (
        f"curl -s --fail-with-body {shlex.quote(address)} \\\n"
        '  -H "Authorization: Bearer $KONSTRUCT_API_KEY" \\\n'
        f'  -H "Content-Type: application/json" -d {document}'
    )


def python_snippet(server: str, body: Mapping[str, Any]) -> str:
    """Return the request as a program. The client reads the key from KONSTRUCT_API_KEY."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in body.items() if name != "query")
    return (
        "from konstruct_client import Client\n\n"
        f"with Client({server!r}) as konstruct:\n"
        f"    found = konstruct.memories.search({body['query']!r}, {arguments})\n"
        '    print(found["results"])'
    )
