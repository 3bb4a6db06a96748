"""The base class of API views. Each method declares its operation with `@operation`."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.functional import cached_property
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.throttling import BaseThrottle
from rest_framework.utils.encoders import JSONEncoder
from rest_framework.views import APIView

from konstruct.api.auth.keys import Program
from konstruct.api.auth.permissions import Caller, Operation, caller_of
from konstruct.api.http.access_log import (
    READ_ACTIONS,
    EntryValues,
    record_refusal,
    record_request,
)
from konstruct.api.http.bodies import NoParametersSerializer, StrictSerializer, validate_query
from konstruct.api.http.lists import KeysetPagination, page_serializer
from konstruct.api.http.problems import Problem, Refusal
from konstruct.api.http.schema import header, problems
from konstruct.api.models import KeyScope
from konstruct.orchestrator.models import Agent
from tenants import transaction
from tenants.audit.changes import RowState, row_state
from tenants.audit.models import Action
from tenants.context import current_tenant_id
from tenants.exceptions import KonstructError
from tenants.limits.quotas import request_buckets
from tenants.limits.rate_limit import take_from
from tenants.outages import is_outage
from tenants.serving import tenant_of_request

# Reads have a separate bucket, so that polling for replies leaves tokens for messages.
SENDING = "rest"
READING = "api"


class TenantThrottle(BaseThrottle):
    """Takes a token for each request from the bucket of the tenant and from that of the API key.

    The bucket of a key is smaller, so that a program leaves requests to the other programs of its
    tenant.
    """

    def __init__(self) -> None:
        self.retry_after = 0.0

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Take a token, and store the bucket's answer for the response's headers."""
        tenant_id = current_tenant_id()
        if tenant_id is None:  # an unauthenticated request does nothing
            return True
        channel = READING if request.method in ("GET", "HEAD", "OPTIONS") else SENDING
        key = request.user.key.prefix if isinstance(request.user, Program) else None
        served = tenant_of_request()
        buckets = request_buckets(served.quotas if served else {}, channel, key)
        bucket = take_from(tenant_id, buckets)
        self.retry_after = bucket.retry_after
        request._request.rate_limit = bucket  # type: ignore[attr-defined]  # for the headers below
        return bucket.allowed

    def wait(self) -> float:
        """Return the seconds until the next token."""
        return self.retry_after


class RateLimited(APIView):
    """A view with requests that cost tokens, and responses with the number of remaining tokens."""

    throttle_classes = [TenantThrottle]

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Add the RateLimit headers to every response, including errors."""
        final = super().finalize_response(request, response, *args, **kwargs)
        bucket = getattr(getattr(request, "_request", request), "rate_limit", None)
        if bucket is not None:
            final["RateLimit-Limit"] = str(bucket.limit)
            final["RateLimit-Remaining"] = str(bucket.remaining)
            final["RateLimit-Reset"] = str(math.ceil(bucket.reset_after))
        return final


IF_MATCH = header(
    "If-Match",
    "The ETag that you received. The change is refused if the resource has changed since then.",
)
_ETAG = re.compile(r'(?:W/)?("[\x21\x23-\x7e]*")')

Handler = TypeVar("Handler", bound=Callable[..., Any])
Names = str | tuple[str, ...]


def operation(
    action: Action,
    subject: str,
    *,
    permission: Names,
    scope: KeyScope | tuple[KeyScope, ...] | None = None,
    query: type[StrictSerializer] | None = NoParametersSerializer,
    body: type[StrictSerializer] | None = None,
    own_transaction: bool = False,
    id: str = "",
    description: str | None = None,
    returns: type[serializers.Serializer] | Mapping[Any, Any] | None = None,
    page: type[serializers.Serializer] | None = None,
    errors: tuple[int, ...] = (),
    headers: Sequence[OpenApiParameter] = (),
) -> Callable[[Handler], Handler]:
    """Declare the operation that a method of a view performs.

    The first group of arguments is enforced, the second is for the OpenAPI description. The first
    line of the method's docstring is the summary, and the rest is the description. examples.json
    has the examples. An operation without an id is not in the description.

    Args:
        action: the action of the entry in the access log.
        subject: the kind of thing that the entry names, such as "fact".
        permission: the permissions that a person needs, all of them. An empty tuple refuses every
            person.
        scope: the scopes that allow an API key, any one of them. By default READ for reads, ERASE
            for erasures, and WRITE for every other action.
        query: validates the query parameters, which become `self.query`. None: no validation.
        body: validates the body, which becomes `self.fields`.
        own_transaction: whether the method opens its own transaction and calls
            `self.write_log_entry` in it, for example because it waits for a language model.

        id: the operationId.
        description: replaces the rest of the docstring, for text with values in it.
        returns: the serializer of a 200, or the responses by status.
        page: the serializer of the rows of a list.
        errors: statuses of errors that not every operation has, and that its headers and fields do
            not imply: If-Match implies 412, and a field `agent` implies 422.
        headers: headers of the request and of the response.
    """

    scopes = scope or _default_scope(action)

    def declare(handler: Handler) -> Handler:
        declared: Any = handler
        declared.operation = Operation(
            action=action,
            subject=subject,
            scopes=scopes if isinstance(scopes, tuple) else (scopes,),
            permissions=permission if isinstance(permission, tuple) else (permission,),
            query=query,
            body=body,
            own_transaction=own_transaction,
        )
        if not id:
            return handler
        responses = returns if isinstance(returns, Mapping) else {200: returns}
        if page is not None:
            responses = {200: page_serializer(page)}
        parameters = [] if query in (None, NoParametersSerializer) else [query]
        return extend_schema(
            operation_id=id,
            description=description,
            request=body,
            parameters=[*parameters, *headers],
            responses={**responses, **problems(*errors, *_implied_errors(headers, query, body))},
        )(handler)

    return declare


def _implied_errors(
    headers: Sequence[OpenApiParameter], *serializer_classes: type[StrictSerializer] | None
) -> Iterator[int]:
    if IF_MATCH in headers:
        yield 412
    if any(
        serializer is not None and "agent" in serializer().fields
        for serializer in serializer_classes
    ):
        yield 422


def _default_scope(action: Action) -> KeyScope:
    if action in READ_ACTIONS:
        return KeyScope.READ
    return KeyScope.ERASE if action is Action.ERASE else KeyScope.WRITE


def no_content(description: str) -> dict[int, OpenApiResponse]:
    """Return the responses of an operation that answers 204."""
    return {204: OpenApiResponse(description=description)}


class ApiView(RateLimited):
    """Base class of the API's views. A subclass with a method without @operation raises TypeError.

    It checks scope, permission, query parameters and body, opens the transaction, and writes the
    request into the access log: a successful one with the values of `log`, another one as refused.
    A change and its entry in the log are one transaction.

    Attributes:
        tag: the group of its operations in the OpenAPI description.
        allows_bound_keys: whether keys that are bound to an agent or a user may call it. Such a
            view must limit its reads and changes with `self.caller`.
        records_itself: whether the view logs its calls itself, without operations.
        operations: the operations by HTTP method.
        query: the checked query parameters.
        fields: the checked body.
    """

    tag: ClassVar[str] = ""
    allows_bound_keys: ClassVar[bool] = False
    records_itself: ClassVar[bool] = False
    operations: ClassVar[Mapping[str, Operation]] = {}
    request: Any
    query: dict[str, Any]
    fields: dict[str, Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        operations = {
            name.upper(): getattr(getattr(cls, name), "operation", None)
            for name in cls.http_method_names
            if hasattr(cls, name) and name != "options"
        }
        missing = [name for name, operation in operations.items() if operation is None]
        if missing and not cls.records_itself:
            raise TypeError(
                f"{cls.__qualname__} does not declare {', '.join(missing)}: decorate the method "
                "with @operation, which names its action, subject and permission."
            )
        cls.operations = {
            name: operation for name, operation in operations.items() if operation is not None
        }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._entry_values = EntryValues()
        self._is_recorded = False

    @property
    def operation(self) -> Operation | None:
        """The operation of the request; None for a method that the view does not have."""
        method = self.request.method
        return self.operations.get("GET" if method == "HEAD" else method)

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        """Check that the request is allowed, and wrap the method with validation and access log."""
        super().initial(request, *args, **kwargs)
        encoding = request.headers.get("Content-Encoding", "identity")
        if encoding.lower() != "identity":
            detail = f"The body has the Content-Encoding {encoding[:40]!r}: send it without one."
            headers = {"Accept-Encoding": "identity"}
            raise Refusal(Problem.of_status(415, detail, headers=headers))
        name = str(request.method).lower()
        handler = getattr(self, name, None)
        if handler is not None and name != "options":
            setattr(self, name, self._wrap_handler(handler))

    def handle_exception(self, exc: Exception) -> Any:
        """Return the response to an error, and log the request as refused."""
        response = super().handle_exception(exc)
        if is_outage(exc):  # the access log cannot be written either
            return response
        try:
            caller = self.caller if self.request.user else None
        except APIException:  # the request was refused before authentication, or by it
            caller = None
        record_refusal(self.request, caller, response.status_code, self.operation)
        return response

    @cached_property
    def caller(self) -> Caller:
        """The program or person that sends the request."""
        return caller_of(self.request)

    def log(
        self,
        row: Model | None = None,
        *,
        action: Action | None = None,
        before: RowState | None = None,
        after: RowState | None = None,
        people: Iterable[str] = (),
        **detail: Any,
    ) -> None:
        """Add to the request's entry in the access log.

        Args:
            row: the row that was shown or changed; the entry takes its agent and user.
            action: the action, if it is not the declared one.
            before: the row before a change.
            after: the row after it.
            people: the users of the request, beside that of the row.
        """
        values = self._entry_values
        values.people.update(people)
        values.row, values.action = row or values.row, action or values.action
        values.before, values.after = before or values.before, after or values.after
        values.detail |= detail

    def changed(
        self,
        row: Model,
        before: RowState,
        serializer_class: type[serializers.Serializer],
        *,
        with_etag: bool = False,
        **detail: Any,
    ) -> Response:
        """Log a change of a row, and return the response with the row."""
        self.log(row, before=before, after=row_state(row), **detail)
        document = self.document(row, serializer_class)
        return Response(document, headers={"ETag": etag_of(document)} if with_etag else None)

    def log_created(self, row: Model, *, is_new: bool) -> None:
        """Add a row to the request's entry: as created, or as shown if it existed before."""
        if is_new:
            self.log(row, after=row_state(row))
        else:
            self.log(row, action=Action.VIEW)

    def write_log_entry(self, shown: Any = None) -> None:
        """Write the entry of the request, in the current transaction if there is one.

        Args:
            shown: the body of the response to a read, with the people that it shows.
        """
        record_request(self.request, self.caller, self._entry_values, self.operation, shown)
        self._is_recorded = True

    def mark_recorded(self) -> None:
        """Mark the request as logged, if the view has written its entry."""
        self._is_recorded = True

    def page(
        self,
        rows: Any,
        pages: KeysetPagination,
        serializer_class: type[serializers.Serializer],
    ) -> Response:
        """Return the response with a page of rows."""
        page = pages.paginate_queryset(rows, self.request, view=self)
        return pages.get_paginated_response(self.documents(page, serializer_class))

    def show(
        self, rows: QuerySet[Any], serializer_class: type[serializers.Serializer], pk: UUID
    ) -> Response:
        """Return the response with one row. Raises Http404 if the caller may see no such row."""
        row = get_object_or_404(self.caller.rows(rows), pk=pk)
        self.log(row)
        return Response(self.document(row, serializer_class))

    def documents(
        self, rows: Iterable[Any], serializer_class: type[serializers.Serializer]
    ) -> list[dict[str, Any]]:
        """Return the JSON of rows. One query reads the names of all their agents."""
        rows = list(rows)
        context: dict[str, Any] = {"request": self.request}
        serializer: Any = serializer_class(rows, many=True, context=context)
        name_fields = [
            field for field in serializer.child.fields.values() if hasattr(field, "agent_id_of")
        ]
        ids = {field.agent_id_of(row) for field in name_fields for row in rows}
        context["agent_names"] = agent_names(ids - {None})
        return list(serializer.data)

    def document(self, row: Any, serializer_class: type[serializers.Serializer]) -> dict[str, Any]:
        """Return the JSON of a row."""
        return self.documents([row], serializer_class)[0]

    def _wrap_handler(self, handler: Callable[..., HttpResponseBase]) -> Callable[..., Any]:
        def answer(request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
            operation = self.operation
            has_own_transaction = operation is not None and operation.own_transaction
            with nullcontext() if has_own_transaction else transaction.atomic():
                if operation is not None and operation.query is not None:
                    self.query = validate_query(request, operation.query, caller=self.caller)
                if operation is not None and operation.body is not None:
                    body = operation.body(data=request.data, context={"caller": self.caller})
                    body.is_valid(raise_exception=True)
                    self.fields = body.validated_data
                response: HttpResponseBase = handler(request, *args, **kwargs)
                if not self._is_recorded:
                    is_read = operation is not None and operation.action in READ_ACTIONS
                    self.write_log_entry(getattr(response, "data", None) if is_read else None)
                return response

        return answer


class UrlField(serializers.URLField):
    """The address of a row.

    Args:
        view_name: the name of the route.
        attribute: the attribute of the row that the route's argument is.
    """

    def __init__(self, view_name: str, attribute: str = "pk", **options: Any) -> None:
        self.view_name, self.attribute = view_name, attribute
        super().__init__(**options)

    def get_attribute(self, instance: Any) -> str:
        """Return the absolute address."""
        argument = getattr(instance, self.attribute)
        return reverse(self.view_name, args=[argument], request=self.context["request"])


class AgentNameField(serializers.CharField):
    """The name of a row's agent, from the names that `ApiView.documents` read.

    Args:
        column: the attribute with the agent's id. Without an agent the name is null if that is
            allowed, else empty.
    """

    def __init__(self, column: str = "agent_id", **options: Any) -> None:
        self.column = column
        super().__init__(**options)

    def agent_id_of(self, row: Any) -> UUID | None:
        """Return the id of the row's agent."""
        return getattr(row, self.column)

    def get_attribute(self, instance: Any) -> str | None:
        """Return the name."""
        name: str | None = self.context["agent_names"].get(self.agent_id_of(instance))
        return None if name is None and self.allow_null else name or ""


def agent_names(agent_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return the names of these agents."""
    return dict(Agent.objects.filter(pk__in=set(agent_ids)).values_list("pk", "name"))


class ChangedSince(KonstructError):
    """The resource was changed since the caller read it."""


def etag_of(document: Any) -> str:
    """Return the tag of a resource's state, from its JSON."""
    text = json.dumps(document, cls=JSONEncoder, sort_keys=True)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def etag_response(request: Request, document: Any) -> Response:
    """Return the response to a GET with the ETag; 304 if If-None-Match has this ETag."""
    etag = etag_of(document)
    if _matches(request.headers.get("If-None-Match"), etag):
        return Response(status=304, headers={"ETag": etag})
    return Response(document, headers={"ETag": etag})


def require_match(request: Request, document: Any) -> None:
    """Raise ChangedSince if the request's If-Match differs from the ETag of the document.

    Lock the rows before, so that they do not change in between. Weak tags match too: gzip makes
    tags weak, and these tags identify the state, not the bytes.
    """
    if_match = request.headers.get("If-Match")
    if if_match is not None and not _matches(if_match, etag_of(document)):
        raise ChangedSince("It was changed since you read it. Read it again and decide anew.")


def _matches(header: str | None, etag: str) -> bool:
    if header is None:
        return False
    return header.strip() == "*" or etag in _ETAG.findall(header)
