"""Under which words the access log has each request of the API, and what it says of it."""

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from django.core.exceptions import SuspiciousOperation
from django.db import DatabaseError
from django.db.models import Model
from rest_framework.request import Request

from konstruct.api.auth.keys import Program
from konstruct.api.auth.permissions import Caller
from konstruct.api.http.problems import current_request_id
from tenants.audit.access_log import Actor, record_access
from tenants.audit.changes import RowState
from tenants.audit.models import Action, ActorKind
from tenants.context import current_tenant_id
from tenants.http.client_address import current_address
from tenants.limits.login_throttle import is_first_refusal, strange_request
from tenants.outages import is_outage, outage_reason
from tenants.postgresql.entering import Queued

logger = logging.getLogger(__name__)

# By the names of URLs and methods: all of them.
RECORDED: Final[dict[tuple[str, str], tuple[Action, str]]] = {
    ("agent", "GET"): (Action.VIEW, "agent"),
    ("agent", "PATCH"): (Action.EDIT, "agent"),
    ("agents", "GET"): (Action.LIST, "agents"),
    ("agents", "POST"): (Action.CREATE, "agent"),
    ("chat-completions", "POST"): (Action.SEND, "message"),
    ("checkpoint-writes", "POST"): (Action.EDIT, "session"),
    ("checkpoints", "GET"): (Action.VIEW, "session"),
    ("checkpoints", "POST"): (Action.EDIT, "session"),
    ("compile-context", "POST"): (Action.SEARCH, "context"),
    ("conversation-item", "DELETE"): (Action.DELETE, "conversation item"),
    ("conversation-items", "DELETE"): (Action.DELETE, "conversation items"),
    ("conversation-items", "GET"): (Action.VIEW, "conversation items"),
    ("conversation-items", "POST"): (Action.CREATE, "conversation items"),
    ("conversations", "GET"): (Action.LIST, "conversations"),
    ("decision", "POST"): (Action.DECIDE, "tool call"),
    ("erasure", "GET"): (Action.VIEW, "erasure request"),
    ("erasures", "POST"): (Action.ERASE, "person"),
    ("escalation", "GET"): (Action.VIEW, "escalation"),
    ("escalations", "GET"): (Action.LIST, "escalations"),
    ("escalations", "POST"): (Action.ESCALATE, "conversation"),
    ("fact", "DELETE"): (Action.DELETE, "fact"),
    ("fact", "GET"): (Action.VIEW, "fact"),
    ("fact", "PATCH"): (Action.EDIT, "fact"),
    ("fact-batch", "POST"): (Action.CREATE, "facts"),
    ("fact-history", "GET"): (Action.VIEW, "fact"),
    ("facts", "GET"): (Action.LIST, "facts"),
    ("facts", "POST"): (Action.CREATE, "fact"),
    ("identities", "GET"): (Action.LIST, "identities"),
    ("identities", "POST"): (Action.CREATE, "identity"),
    ("identity", "GET"): (Action.VIEW, "identity"),
    ("identity-link", "DELETE"): (Action.LINK, "identity, away from its user"),
    ("identity-link", "PUT"): (Action.LINK, "identity"),
    ("import", "POST"): (Action.IMPORT, "messages"),
    ("mem0-add", "POST"): (Action.CREATE, "facts"),
    ("mem0-batch", "DELETE"): (Action.DELETE, "facts"),
    ("mem0-batch", "PUT"): (Action.EDIT, "facts"),
    ("mem0-entities", "GET"): (Action.LIST, "people"),
    ("mem0-entity", "DELETE"): (Action.DELETE, "facts"),
    ("mem0-history", "GET"): (Action.VIEW, "fact"),
    ("mem0-list", "POST"): (Action.LIST, "facts"),
    ("mem0-memories", "DELETE"): (Action.DELETE, "facts"),
    ("mem0-memory", "DELETE"): (Action.DELETE, "fact"),
    ("mem0-memory", "GET"): (Action.VIEW, "fact"),
    ("mem0-memory", "PUT"): (Action.EDIT, "fact"),
    ("mem0-ping", "GET"): (Action.VIEW, "key"),
    ("mem0-search", "POST"): (Action.SEARCH, "facts"),
    ("message", "DELETE"): (Action.ERASE, "message"),
    ("message", "GET"): (Action.VIEW, "message"),
    ("messages", "GET"): (Action.LIST, "messages"),
    ("messages", "POST"): (Action.SEND, "message"),
    ("model", "GET"): (Action.VIEW, "agent"),
    ("models", "GET"): (Action.LIST, "agents"),
    ("recall-event", "GET"): (Action.VIEW, "recall event"),
    ("recall-events", "GET"): (Action.LIST, "recall events"),
    ("resolution", "POST"): (Action.RESOLVE, "escalation"),
    ("search-facts", "POST"): (Action.SEARCH, "facts"),
    ("search-memories", "POST"): (Action.SEARCH, "memories"),
    ("session", "DELETE"): (Action.CLEAR, "session"),
    ("session", "GET"): (Action.VIEW, "session"),
    ("sessions", "GET"): (Action.LIST, "sessions"),
    ("tool-call", "GET"): (Action.VIEW, "tool call"),
    ("tool-calls", "GET"): (Action.LIST, "tool calls"),
    ("transcript", "DELETE"): (Action.ERASE, "conversation"),
    ("transcript", "GET"): (Action.VIEW, "conversation"),
    ("usage", "GET"): (Action.VIEW, "usage"),
    ("users", "GET"): (Action.LIST, "people"),
    ("windows", "DELETE"): (Action.CLEAR, "window"),
    ("windows", "GET"): (Action.VIEW, "window"),
}
# They change nothing, so that they need no transaction with their record.
READS: Final = frozenset({Action.LIST, Action.VIEW, Action.SEARCH})
# Of a request's parameters, those that say what was asked for.
_TOLD: Final = ("agent", "query", "task", "thread_id")


@dataclass(frozen=True)
class Asked:
    """What a request asks for, where its body says it and not its address: `request.asked`."""

    action: Action
    subject: str
    given: Mapping[str, Any]


@dataclass
class Noted:
    """What a view knows of its request beside what the request says."""

    action: Action | None = None
    row: Model | None = None
    before: RowState | None = None
    after: RowState | None = None
    detail: dict[str, Any] = field(default_factory=dict)


def recorded_as(request: Request) -> tuple[Action, str] | None:
    """Return the words for what a request asks for; None for what its address does not know."""
    asked = _asked_in_body(request)
    if asked is not None:
        return asked.action, asked.subject
    match = request.resolver_match
    method = "GET" if request.method == "HEAD" else request.method or ""
    return None if match is None else RECORDED.get((str(match.url_name), method))


def record_request(
    request: Request, caller: Caller, noted: Noted, *, with_next: bool = False
) -> Queued | None:
    """Write down what was done: in the transaction of a change, before an answer is sent."""
    known = recorded_as(request)
    if known is None:
        return None
    action, subject = known
    return record_access(
        noted.action or action,
        subject,
        by=actor_of(request),
        request_id=current_request_id(),
        before=noted.before,
        after=noted.after,
        with_next=with_next,
        **_whose(request, caller, noted.row),
        **_asked(request),
        **noted.detail,
    )


def record_refusal(request: Request, caller: Caller | None, status: int) -> None:
    """Write down that a request was refused, or failed: as that, and not as what it asked for.

    What was done for it is undone by now. A refusal that cannot be written down stays one.
    """
    if not _is_to_be_recorded(request, status):
        return
    known = recorded_as(request)
    match = request.resolver_match
    route = "" if match is None else str(match.url_name)
    attempted, subject = known or (str(request.method), route)
    try:
        record_access(
            Action.REFUSE,
            subject,
            by=actor_of(request),
            request_id=current_request_id(),
            attempted=str(attempted),
            status=status,
            **_whose(request, caller, None),
            **_asked(request),
        )
    except DatabaseError as error:
        logger.error(  # noqa: TRY400 (of an outage the reason is enough)
            "a refusal (%s) is not in the access log: %s",
            *(status, outage_reason(error)),
            exc_info=not is_outage(error),
        )


def actor_of(request: Request) -> Actor:
    """Who sends the request, as the access log calls them."""
    if isinstance(request.user, Program):
        return Actor(ActorKind.PROGRAM, str(request.user.key.pk), request.user.key.name)
    user = request.user or getattr(request._request, "refused_user", None)
    if user is None:
        return Actor(ActorKind.UNKNOWN, "", "")
    return Actor.person(user)


def _is_to_be_recorded(request: Request, status: int) -> bool:
    """Tell whether a refusal goes into the log, which nobody may fill by being refused."""
    tenant_id = current_tenant_id()
    if tenant_id is None or request.method == "OPTIONS":
        return False
    actor = actor_of(request)
    if actor.kind == ActorKind.UNKNOWN:
        if status == 429:
            return False
        # A key that opens nothing has been counted where it was refused.
        counted: bool | None = getattr(request._request, "is_worth_recording", None)
        return strange_request(current_address())[1] if counted is None else counted
    return status != 429 or is_first_refusal(f"{actor.kind}-{actor.id}", tenant=tenant_id)


def _whose(request: Request, caller: Caller | None, row: Model | None) -> dict[str, Any]:
    """What it is about, as columns: the row, else what the request has named."""
    match = request.resolver_match
    given = _given(request).get("user_id")
    named = {} if caller is None else caller.named
    agent_id = named.get("agent_id")
    user_id = given if isinstance(given, str) else named.get("user_id")
    if caller is not None:
        agent_id, user_id = agent_id or caller.agent_id, user_id or caller.user_id
    subject_id: object = next(iter(match.kwargs.values()), "") if match else ""
    if row is not None:
        subject_id = subject_id or row.pk
        agent_id = getattr(row, "agent_id", row.pk if row._meta.model_name == "agent" else agent_id)
        user_id = getattr(row, "user_id", user_id)
    return {"subject_id": subject_id, "agent_id": agent_id, "user_id": user_id}


def _asked(request: Request) -> dict[str, Any]:
    given = _given(request)
    return {name: given[name] for name in _TOLD if isinstance(given.get(name), str)}


def _given(request: Request) -> dict[str, Any]:
    """Body and query of a request; without what of them was not read, or cannot be."""
    if (asked := _asked_in_body(request)) is not None:
        return dict(asked.given)
    sent = getattr(request, "_full_data", None)
    given = dict(sent) if isinstance(sent, dict) else {}
    with suppress(SuspiciousOperation):  # such as thousands of query parameters
        given |= request.query_params.dict()
    return given


def _asked_in_body(request: Request) -> Asked | None:
    return getattr(request._request, "asked", None)
