"""The operation of a view's method: its callers, its parameters, its entry in the access log."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, TypeVar

from django.core.exceptions import SuspiciousOperation
from django.db import DatabaseError
from django.db.models import Model
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.serializers import Serializer

from konstruct.api.auth.keys import Program
from konstruct.api.auth.permissions import Caller
from konstruct.api.http.bodies import NoParametersSerializer, StrictSerializer
from konstruct.api.http.problems import current_request_id
from konstruct.api.models import KeyScope
from tenants.audit.access_log import Actor, record_access
from tenants.audit.changes import RowState
from tenants.audit.models import Action, ActorKind
from tenants.context import current_tenant_id
from tenants.http import current_address
from tenants.limits.rate_limit import count_anonymous_request, is_first_refusal
from tenants.outages import is_outage, outage_reason

logger = logging.getLogger(__name__)

Handler = TypeVar("Handler", bound=Callable[..., Any])


@dataclass(frozen=True)
class Operation:
    """The operation that a method of a view does, declared by `@operation(...)`.

    The first line of the method's docstring is the summary in the OpenAPI description, and the rest
    is the description. examples.json has the examples.

    Attributes:
        action: the action of the entry in the access log.
        subject: the kind of thing that the entry names. Default: the view's `subject`.
        permission: the permissions that a person needs, all of them. An empty tuple refuses every
            person. Default: the view's, or Django's permission to view, add, change or delete the
            view's model.
        scope: the scopes that allow an API key, any one of them. By default READ for reads, ERASE
            for erasures, and WRITE for every other action.
        query: validates the query parameters, which become `self.query`. None: no validation.
        body: validates the body, which becomes `self.fields`.
        filters: the FilterSet of a list, which `filter_queryset` applies.
        own_transaction: whether the method opens its own transaction and calls
            `self.write_log_entry` in it, for example because it waits for a language model.
        id: the operationId. Default: the method's name, or of `list` and the like with the subject.
        returns: the serializer of a success, or the responses by status. Default: the view's.
        page: the serializer of the rows of a list.
        errors: statuses of errors that not every operation has, and that its headers and fields do
            not imply: If-Match implies 412, and a field `agent` implies 422.
        headers: headers of the request and of the response.
    """

    action: Action
    subject: str = ""
    _: KW_ONLY
    permission: str | tuple[str, ...] | None = None
    scope: KeyScope | tuple[KeyScope, ...] = ()
    query: type[StrictSerializer] | None = NoParametersSerializer
    body: type[Serializer] | None = None
    filters: Any = None
    own_transaction: bool = False
    id: str = ""
    returns: Any = None
    page: Any = None
    errors: tuple[int, ...] = ()
    headers: Sequence[OpenApiParameter] = ()

    def __call__(self, handler: Handler) -> Handler:
        """Declare it for a method."""
        handler.operation = self  # type: ignore[attr-defined]
        return handler

    @property
    def permissions(self) -> tuple[str, ...]:
        """The permissions that a person needs."""
        given = self.permission
        return (given,) if isinstance(given, str) else given or ()

    @property
    def scopes(self) -> tuple[KeyScope, ...]:
        """The scopes of which a key needs one."""
        return self.scope if isinstance(self.scope, tuple) else (self.scope,)


operation = Operation


# Actions without a change, which need no transaction with their entry.
READ_ACTIONS: Final = frozenset({Action.LIST, Action.VIEW, Action.SEARCH})


@dataclass(frozen=True)
class BodyOperation:
    """The operation in a request's body, such as an MCP call: `request.body_operation`."""

    action: Action
    subject: str
    arguments: Mapping[str, Any]


@dataclass
class EntryValues:
    """Values that a view adds to the entry of its request."""

    action: Action | None = None
    row: Model | None = None
    before: RowState | None = None
    after: RowState | None = None
    people: set[str] = field(default_factory=set)
    detail: dict[str, Any] = field(default_factory=dict)


def logged_operation(request: Request, operation: Operation | None) -> tuple[Action, str] | None:
    """Return action and subject of the request's entry; None without an operation."""
    body_operation = _body_operation(request)
    if body_operation is not None:
        return body_operation.action, body_operation.subject
    return None if operation is None else (operation.action, operation.subject)


def record_request(
    request: Request,
    caller: Caller,
    values: EntryValues,
    operation: Operation | None,
    shown: Any = None,
) -> None:
    """Write the entry of an answered request, in its transaction.

    Args:
        shown: the body of the response to a read, in which users are called `user_id`.
    """
    operation_names = logged_operation(request, operation)
    if operation_names is None:
        return
    action, subject = operation_names
    record_access(
        values.action or action,
        subject,
        by=actor_of(request),
        request_id=current_request_id(),
        before=values.before,
        after=values.after,
        people={*_user_ids_in(shown), *values.people},
        **_subject_of(request, caller, values.row),
        **values.detail,
    )


def _user_ids_in(document: Any) -> Iterator[str]:
    if isinstance(document, Mapping):
        user_id = document.get("user_id")
        if isinstance(user_id, str):
            yield user_id
        document = document.values()
    elif not isinstance(document, list | tuple):
        return
    for each in document:
        yield from _user_ids_in(each)


def record_refusal(
    request: Request, caller: Caller | None, status: int, operation: Operation | None = None
) -> None:
    """Write the entry of a request that was refused or that failed, after its rollback.

    The request stays refused if the entry cannot be written.
    """
    if not _should_record(request, status):
        return
    operation_names = logged_operation(request, operation)
    match = request.resolver_match
    route = "" if match is None else str(match.url_name)
    attempted, subject = operation_names or (str(request.method), route)
    try:
        record_access(
            Action.REFUSE,
            subject,
            by=actor_of(request),
            request_id=current_request_id(),
            attempted=str(attempted),
            status=status,
            **_subject_of(request, caller, None),
        )
    except DatabaseError as error:
        logger.error(  # noqa: TRY400 (of an outage the reason is enough)
            "a refusal (%s) is not in the access log: %s",
            *(status, outage_reason(error)),
            exc_info=not is_outage(error),
        )


def actor_of(request: Request) -> Actor:
    """Return the program or the person of the request, as an actor of the access log."""
    if isinstance(request.user, Program):
        return Actor(ActorKind.PROGRAM, str(request.user.key.pk), request.user.key.name)
    user = request.user or getattr(request._request, "refused_user", None)
    if user is None:
        return Actor(ActorKind.UNKNOWN, "", "")
    return Actor.person(user)


def _should_record(request: Request, status: int) -> bool:
    """Return whether to log a refusal. Repeated refusals are not logged, to limit the log."""
    tenant_id = current_tenant_id()
    if tenant_id is None or request.method == "OPTIONS":
        return False
    actor = actor_of(request)
    if actor.kind == ActorKind.UNKNOWN:
        if status == 429:
            return False
        if hasattr(request._request, "should_record"):  # an invalid key, which was counted
            return bool(request._request.should_record)
        return count_anonymous_request(current_address())[1]
    return status != 429 or is_first_refusal(f"{actor.kind}-{actor.id}", tenant=tenant_id)


def _subject_of(request: Request, caller: Caller | None, row: Model | None) -> dict[str, Any]:
    """Return the entry's columns of its subject: from the row, or from the request."""
    match = request.resolver_match
    if (body_operation := _body_operation(request)) is not None:
        user_id_sent = body_operation.arguments.get("user_id")
    else:
        body = getattr(request, "_full_data", None)  # of a body that was parsed
        user_id_sent = body.get("user_id") if isinstance(body, dict) else None
        with suppress(SuspiciousOperation):  # such as thousands of query parameters
            user_id_sent = request.query_params.get("user_id", user_id_sent)
    named = {} if caller is None else caller.named
    agent_id = named.get("agent_id")
    user_id = user_id_sent if isinstance(user_id_sent, str) else named.get("user_id")
    if caller is not None:
        agent_id, user_id = agent_id or caller.agent_id, user_id or caller.user_id
    subject_id: object = next(iter(match.kwargs.values()), "") if match else ""
    if row is not None:
        subject_id = subject_id or row.pk
        agent_id = getattr(row, "agent_id", row.pk if row._meta.model_name == "agent" else agent_id)
        user_id = getattr(row, "user_id", user_id)
    return {"subject_id": subject_id, "agent_id": agent_id, "user_id": user_id}


def _body_operation(request: Request) -> BodyOperation | None:
    return getattr(request._request, "body_operation", None)
