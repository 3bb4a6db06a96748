"""The access log's entries of the API's requests."""

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
from konstruct.api.auth.permissions import Caller, Operation
from konstruct.api.http.problems import current_request_id
from tenants.audit.access_log import Actor, record_access
from tenants.audit.changes import RowState
from tenants.audit.models import Action, ActorKind
from tenants.context import current_tenant_id
from tenants.http.client_address import current_address
from tenants.limits.login_throttle import count_anonymous_request, is_first_refusal
from tenants.outages import is_outage, outage_reason
from tenants.postgresql.tenant_settings import QueuedStatement

logger = logging.getLogger(__name__)

# These change nothing, so they need no transaction with their entry.
READS: Final = frozenset({Action.LIST, Action.VIEW, Action.SEARCH})
# Request parameters that an entry keeps.
RECORDED_PARAMETERS: Final = ("agent", "q", "query", "task", "thread_id")


@dataclass(frozen=True)
class BodyOperation:
    """The operation that a request's body names, such as an MCP call (`request.body_operation`)."""

    action: Action
    subject: str
    given: Mapping[str, Any]


@dataclass
class EntryValues:
    """Values for the entry of a request that its view adds."""

    action: Action | None = None
    row: Model | None = None
    before: RowState | None = None
    after: RowState | None = None
    detail: dict[str, Any] = field(default_factory=dict)


def recorded_as(request: Request, operation: Operation | None) -> tuple[Action, str] | None:
    """Return action and subject of the request's entry; None where no operation is known."""
    named = _body_operation(request)
    if named is not None:
        return named.action, named.subject
    return None if operation is None else (operation.action, operation.subject)


def record_request(
    request: Request,
    caller: Caller,
    values: EntryValues,
    operation: Operation | None,
    *,
    with_next: bool = False,
) -> QueuedStatement | None:
    """Write the entry of an answered request, in the transaction of its change.

    With `with_next` the entry is sent together with the next query.
    """
    known = recorded_as(request, operation)
    if known is None:
        return None
    action, subject = known
    return record_access(
        values.action or action,
        subject,
        by=actor_of(request),
        request_id=current_request_id(),
        before=values.before,
        after=values.after,
        with_next=with_next,
        **_subject_of(request, caller, values.row),
        **_parameters_of(request),
        **values.detail,
    )


def record_refusal(
    request: Request, caller: Caller | None, status: int, operation: Operation | None = None
) -> None:
    """Write the entry of a request that was refused or that failed, after its rollback.

    The request stays refused if the entry cannot be written.
    """
    if not _is_to_be_recorded(request, status):
        return
    known = recorded_as(request, operation)
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
            **_subject_of(request, caller, None),
            **_parameters_of(request),
        )
    except DatabaseError as error:
        logger.error(  # noqa: TRY400 (of an outage the reason is enough)
            "a refusal (%s) is not in the access log: %s",
            *(status, outage_reason(error)),
            exc_info=not is_outage(error),
        )


def actor_of(request: Request) -> Actor:
    """The program or person that sends the request."""
    if isinstance(request.user, Program):
        return Actor(ActorKind.PROGRAM, str(request.user.key.pk), request.user.key.name)
    user = request.user or getattr(request._request, "refused_user", None)
    if user is None:
        return Actor(ActorKind.UNKNOWN, "", "")
    return Actor.person(user)


def _is_to_be_recorded(request: Request, status: int) -> bool:
    """Return whether a refusal is logged. Repeated refusals are not, so they cannot fill it."""
    tenant_id = current_tenant_id()
    if tenant_id is None or request.method == "OPTIONS":
        return False
    actor = actor_of(request)
    if actor.kind == ActorKind.UNKNOWN:
        if status == 429:
            return False
        # A key that opens nothing has been counted where it was refused.
        counted: bool | None = getattr(request._request, "should_record", None)
        return count_anonymous_request(current_address())[1] if counted is None else counted
    return status != 429 or is_first_refusal(f"{actor.kind}-{actor.id}", tenant=tenant_id)


def _subject_of(request: Request, caller: Caller | None, row: Model | None) -> dict[str, Any]:
    """Columns of the entry's subject: of the row, else of the agent and user in the request."""
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


def _parameters_of(request: Request) -> dict[str, Any]:
    given = _given(request)
    return {name: given[name] for name in RECORDED_PARAMETERS if isinstance(given.get(name), str)}


def _given(request: Request) -> dict[str, Any]:
    """Parameters of body and query, as far as they were read."""
    if (named := _body_operation(request)) is not None:
        return dict(named.given)
    sent = getattr(request, "_full_data", None)
    given = dict(sent) if isinstance(sent, dict) else {}
    with suppress(SuspiciousOperation):  # such as thousands of query parameters
        given |= request.query_params.dict()
    return given


def _body_operation(request: Request) -> BodyOperation | None:
    return getattr(request._request, "body_operation", None)
