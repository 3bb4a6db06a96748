"""The operation of a view's method: callers, parameters, entry in the access log, idempotency."""

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, TypeVar
from uuid import UUID

from django.core.exceptions import SuspiciousOperation
from django.db import DatabaseError
from django.db.models import Model
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.serializers import Serializer

from konstruct.api.auth.authentication import Caller, caller_of
from konstruct.api.auth.keys import Program
from konstruct.api.http import bodies, problems
from konstruct.api.models import IdempotencyRecord, KeyScope
from konstruct.orchestrator.exceptions import IdempotencyKeyInUse, IdempotencyKeyReused
from tenants import http, outages, transaction
from tenants.audit.access_log import Actor, record_access
from tenants.audit.changes import RowState
from tenants.audit.models import Action, ActorKind
from tenants.context import current_tenant_id, fetch_value
from tenants.limits.rate_limit import count_anonymous_request, is_first_refusal

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
        filters: the FilterSet of a list, which `filter_queryset` applies. It declares `query`.
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
    query: type[bodies.StrictSerializer] | None = bodies.NoParametersSerializer
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


@dataclass
class EntryValues:
    """Values that a view adds to the entry of its request."""

    action: Action | None = None
    row: Model | None = None
    before: RowState | None = None
    after: RowState | None = None
    people: set[str] = field(default_factory=set)
    detail: dict[str, Any] = field(default_factory=dict)


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
    if operation is None:
        return
    record_access(
        values.action or operation.action,
        operation.subject,
        by=actor_of(request),
        request_id=problems.current_request_id(),
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
    match = request.resolver_match
    route = "" if match is None else str(match.url_name)
    try:
        record_access(
            Action.REFUSE,
            operation.subject if operation else route,
            by=actor_of(request),
            request_id=problems.current_request_id(),
            attempted=str(operation.action if operation else request.method),
            status=status,
            **_subject_of(request, caller, None),
        )
    except DatabaseError as error:
        logger.error(  # noqa: TRY400 (of an outage the reason is enough)
            "a refusal (%s) is not in the access log: %s",
            *(status, outages.outage_reason(error)),
            exc_info=not outages.is_outage(error),
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
        return count_anonymous_request(http.current_address())[1]
    return status != 429 or is_first_refusal(f"{actor.kind}-{actor.id}", tenant=tenant_id)


def _subject_of(request: Request, caller: Caller | None, row: Model | None) -> dict[str, Any]:
    """Return the entry's columns of its subject: from the row, or from the request."""
    match = request.resolver_match
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


IDEMPOTENCY_HEADER = "Idempotency-Key"
# Visible ASCII characters.
IDEMPOTENCY_KEY = re.compile(r"^[\x21-\x7e]{1,255}$")


class Idempotency:
    """The Idempotency-Key of a request: a POST with the same key creates its row once.

    A key belongs to its caller: the API key or the person, with the agent and the user that the API
    key is bound to. Two callers may send the same text. Raises ValidationError if it is invalid.

    Args:
        request: the request.
        place: an id, for which keys are separate; by default they are the caller's.

    Attributes:
        sent: the key as it was sent; None: the request has none.
        key: its stored form: the caller's id, and a digest of the key and the binding of the API
            key, because an API key that is bound to another user is another caller.
    """

    def __init__(self, request: Request, place: object = "") -> None:
        self.request, self.sent = request, request.headers.get(IDEMPOTENCY_HEADER)
        self.key: str | None = None
        if self.sent is None:
            return
        if IDEMPOTENCY_KEY.fullmatch(self.sent) is None:
            hint = "Give 1 to 255 visible ASCII characters, such as a UUID."
            raise ValidationError({IDEMPOTENCY_HEADER: hint})
        caller = caller_of(request)
        text = f"{place} {self.sent}" if place else self.sent
        self.key = f"{caller.id}/{_digest([str(caller.agent_id or ''), caller.user_id, text])}"

    def once(self, create: Callable[[], UUID]) -> tuple[UUID, bool]:
        """Call `create` in a transaction, once for each key and path.

        A failed request leaves no record, so that it can be sent again. A request without a key
        always calls `create`.

        Args:
            create: creates a row, and returns its id.

        Returns:
            The id of the row, and whether it is new: the same request may have created it before.

        Raises:
            IdempotencyKeyReused: the key belongs to a request with another body.
            IdempotencyKeyInUse: the first request still runs. The second is refused at once,
                because waiting would occupy a thread and a transaction.
        """
        operation = f"{self.request.method} {self.request.path}"
        with transaction.atomic():
            if self.key is None:
                return create(), True
            digest = _digest(self.request.data)
            if not fetch_value("SELECT public.try_tenant_lock(%s)", [f"{operation} {self.key}"]):
                raise IdempotencyKeyInUse(
                    f"A request with the {IDEMPOTENCY_HEADER} {self.sent!r} is in progress. "
                    "Repeat it in a second."
                )
            record = IdempotencyRecord.objects.filter(operation=operation, key=self.key).first()
            if record is None:
                created_id = create()
                IdempotencyRecord.objects.create(
                    operation=operation, key=self.key, digest=digest, made=created_id
                )
                return created_id, True
        if record.digest != digest:
            raise IdempotencyKeyReused(
                f"You have sent {IDEMPOTENCY_HEADER} {self.sent!r} with another request. "
                "Send a new key with a new request."
            )
        return record.made, False


def _digest(document: object) -> str:
    """Return a digest of JSON. The order of fields does not change it."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
