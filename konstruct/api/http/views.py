"""The base classes of API views: each method does one operation, which its class declares."""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, ClassVar, cast
from uuid import UUID

from django.db.models import Model
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.cache import get_conditional_response
from django.utils.http import parse_etags
from rest_framework import exceptions, metadata, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.utils.encoders import JSONEncoder
from rest_framework.viewsets import GenericViewSet

from konstruct.api.auth.authentication import Caller, TenantThrottle, caller_of
from konstruct.api.http.operations import (
    READ_ACTIONS,
    EntryValues,
    Idempotency,
    Operation,
    operation as operation,
    record_refusal,
    record_request,
)
from konstruct.api.http.problems import ChangedSince, Problem, Refusal
from konstruct.api.models import KeyScope
from konstruct.orchestrator.models import Agent
from memory.conversations.transcript import metadata_argument
from memory.facts.rows import merge_metadata
from tenants import outages, transaction
from tenants.audit.changes import RowState, row_state
from tenants.audit.models import Action

_VERBS = {
    **dict.fromkeys((Action.LIST, Action.VIEW, Action.SEARCH), "view"),
    Action.CREATE: "add",
    Action.DELETE: "delete",
}
# Methods that routers know, and the first word of their operationIds.
_STANDARD = {
    "list": "list",
    "retrieve": "get",
    "create": "create",
    "update": "replace",
    "partial_update": "update",
    "destroy": "delete",
}

_OF_MIXINS = {
    "list": Operation(Action.LIST),
    "retrieve": Operation(Action.VIEW, scope=(KeyScope.READ, KeyScope.WRITE)),
}
_SCOPES = {**dict.fromkeys(READ_ACTIONS, KeyScope.READ), Action.ERASE: KeyScope.ERASE}


class Metadata(metadata.SimpleMetadata):
    """The answer to OPTIONS, without the fields of bodies, which the OpenAPI description has."""

    def determine_actions(self, request: Request, view: Any) -> dict[str, Any]:
        """Return nothing."""
        return {}


class ApiViewSet(GenericViewSet):
    """Base class of the API's views: a viewset of which each method does one operation.

    It checks scope, permission, query parameters and body, opens the transaction, and writes the
    request into the access log: a successful one with the values of `log`, another one as refused.
    A change and its entry in the log are one transaction.

    REST framework's mixins and `@action` work as usual. `list` and `retrieve` of its mixins are
    operations that need no declaration; other methods declare theirs by `@operation`, below
    `@action`, or the class raises TypeError. The queryset is limited to the rows of a bound key.

    Attributes:
        subject: a row, as the access log names it; `subjects`: rows, with an s by default.
        allows_bound_keys: whether keys that are bound to an agent or a user may call it. Such a
            view must limit its reads and changes with `self.caller`.
        serializer_class: the serializer of a row in lists.
        detail_serializer_class: the serializer of a single row. Default: the same.
        filterset_class: the filters of the list.
        ordering, ordering_fields: see CursorPagination.
        permission: the permission that a person needs for operations that name none.
        tag: the group of its operations in the OpenAPI description.
        operations: the operations by method.
        query: the checked query parameters.
        fields: the checked body.
    """

    throttle_classes = [TenantThrottle]
    metadata_class = Metadata
    subject: ClassVar[str] = ""
    subjects: ClassVar[str] = ""
    tag: ClassVar[str] = ""
    allows_bound_keys: ClassVar[bool] = False
    detail_serializer_class: ClassVar[type[serializers.Serializer] | None] = None
    filterset_class: ClassVar[Any] = None
    ordering: ClassVar[tuple[str, ...]] = ("-created_at", "-id")
    ordering_fields: ClassVar[tuple[str, ...]] = ()
    lookup_value_converter = "uuid"
    permission: ClassVar[str | None] = None
    serializer_class: Any = None
    operations: ClassVar[Mapping[str, Operation]] = {}
    request: Any
    query: dict[str, Any]
    fields: dict[str, Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.subjects = cls.__dict__.get("subjects") or f"{cls.subject}s"
        cls.lookup_url_kwarg = cls.lookup_url_kwarg or f"{cls.subject.replace(' ', '_')}_id"
        extra = {name for one in cls.get_extra_actions() for name in one.mapping.values()}  # type: ignore[attr-defined]
        names = {name for name in dir(cls) if hasattr(getattr(cls, name), "operation")}
        cls.operations = {
            name: cls._complete(
                name, getattr(getattr(cls, name), "operation", _OF_MIXINS.get(name))
            )
            for name in sorted(names | extra | {name for name in _STANDARD if hasattr(cls, name)})
        }

    @classmethod
    def _complete(cls, name: str, declared: Operation | None) -> Operation:
        """Return the operation of a method with the defaults of the class."""
        if declared is None:
            raise TypeError(
                f"{cls.__qualname__} does not declare {name}: decorate the method with @operation, "
                "which names its action, subject and permission."
            )
        is_list, serializer = name == "list", cls.serializer_class
        subject = cls.subjects if is_list else cls.subject
        page = declared.page or (serializer if is_list else None)
        returns = declared.returns
        if page is not None:
            returns = {200: page(many=True)}
        elif declared.action is Action.DELETE and returns is None:
            returns = {204: None}
        elif not isinstance(returns, Mapping):
            shown = returns or cls.detail_serializer_class or serializer
            returns = {201 if name == "create" else 200: shown}
        permission = cls.permission if declared.permission is None else declared.permission
        if permission is None:
            model: Any = cls.queryset.model._meta  # type: ignore[union-attr]
            verb = _VERBS.get(declared.action, "change")
            permission = f"{model.app_label}.{verb}_{model.model_name}"
        prefix = _STANDARD.get(name)
        filters = declared.filters or (cls.filterset_class if is_list else None)
        return replace(
            declared,
            id=declared.id or (f"{prefix}_{subject.replace(' ', '_')}" if prefix else name),
            subject=declared.subject or subject,
            permission=permission,
            scope=declared.scope or _SCOPES.get(declared.action, KeyScope.WRITE),
            filters=filters,
            query=filters.query() if filters else declared.query,
            returns=returns,
            page=page,
        )

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._entry_values = EntryValues()
        self._is_recorded = False

    @property
    def operation(self) -> Operation | None:
        """The operation of the request; None for a method that the view does not have."""
        return self.operations.get(self.action or "")

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
        if outages.is_outage(exc):  # the access log cannot be written either
            return response
        try:
            caller = self.caller if self.request.user else None
        except exceptions.APIException:  # the request was refused before authentication, or by it
            caller = None
        record_refusal(self.request, caller, response.status_code, self.operation)
        return response

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Add the RateLimit headers to every response, including errors."""
        final = super().finalize_response(request, response, *args, **kwargs)
        bucket = getattr(getattr(request, "_request", request), "rate_limit", None)
        if bucket is not None:
            final["RateLimit-Limit"] = str(bucket.limit)
            final["RateLimit-Remaining"] = str(bucket.remaining)
            final["RateLimit-Reset"] = str(math.ceil(bucket.reset_after))
        return final

    @property
    def caller(self) -> Caller:
        """The program or person that sends the request."""
        return caller_of(self.request)

    def require_read(self) -> None:
        """Refuse an API key without the scope read: it would get what it may not read."""
        if self.caller.scopes and KeyScope.READ not in self.caller.scopes:
            raise exceptions.PermissionDenied("This key needs the scope `read` too.")

    @property
    def idempotency(self) -> Idempotency:
        """The Idempotency-Key of the request."""
        return Idempotency(self.request)

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

    def _wrap_handler(self, handler: Callable[..., HttpResponseBase]) -> Callable[..., Any]:
        def answer(request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
            operation = self.operation
            has_own_transaction = operation is None or operation.own_transaction
            with nullcontext() if has_own_transaction else transaction.atomic():
                if operation is not None:
                    self._validate(operation)
                response: HttpResponseBase = handler(request, *args, **kwargs)
                if not self._is_recorded:
                    is_read = operation is not None and operation.action in READ_ACTIONS
                    self.write_log_entry(getattr(response, "data", None) if is_read else None)
                return response

        return answer

    def _validate(self, operation: Operation) -> None:
        """Check query parameters like a body, and the body. The paginator checks its own ones."""
        if operation.query is not None:
            paginator: Any = self.paginator
            page = paginator.parameters(self) if operation.page else ()
            parameters = self.request.query_params
            if twice := [name for name, values in parameters.lists() if len(values) > 1]:
                raise exceptions.ValidationError(dict.fromkeys(twice, "Give this parameter once."))
            given = {name: value for name, value in parameters.items() if name not in page}
            query = operation.query(data=given, context={"caller": self.caller})
            query.is_valid(raise_exception=True)
            self.query = dict(query.validated_data)
        if operation.body is not None:
            body = operation.body(data=self.request.data, context={"caller": self.caller})
            body.is_valid(raise_exception=True)
            self.fields = body.validated_data

    def get_queryset(self) -> Any:
        """Return the rows that the caller may see."""
        return self.caller.rows(super().get_queryset())

    def get_object(self) -> Any:
        """Return the row that the address names, and add it to the entry in the access log."""
        row = super().get_object()
        self.log(row)
        return row

    def get_serializer_class(self) -> Any:
        """Return the serializer of a row, or that of a row in a list."""
        detail = self.detail_serializer_class or self.serializer_class
        return self.serializer_class if self.action == "list" else detail

    def get_serializer(self, instance: Any = None, **options: Any) -> Any:
        """Return a serializer. One query reads the names of all agents of its rows."""
        serializer = super().get_serializer(instance, **options)
        return with_agent_names(serializer)

    def documents(
        self, rows: Iterable[Any], serializer_class: type[serializers.Serializer]
    ) -> list[dict[str, Any]]:
        """Return the JSON of rows by another serializer than the view's."""
        context = self.get_serializer_context()
        serializer: Any = serializer_class([*rows], many=True, context=context)
        return list(with_agent_names(serializer).data)

    def document(
        self, row: Any, serializer_class: type[serializers.Serializer] | None = None
    ) -> dict[str, Any]:
        """Return the JSON of a row, by the view's serializer of a single row."""
        serializer = serializer_class or self.detail_serializer_class or self.serializer_class
        return self.documents([row], serializer)[0]

    def page(
        self, rows: Any, serializer_class: type[serializers.Serializer] | None = None
    ) -> Response:
        """Return a page of rows, by the serializer of the view or another one."""
        page = self.paginate_queryset(rows) or ()
        return self.get_paginated_response(
            self.documents(page, serializer_class or self.serializer_class)
        )

    def changed(
        self,
        row: Model,
        before: RowState,
        serializer_class: type[serializers.Serializer] | None = None,
        *,
        with_etag: bool = False,
        **detail: Any,
    ) -> Response:
        """Log a change of a row, and return the response with the row."""
        self.log(row, before=before, after=row_state(row), **detail)
        document = self.document(row, serializer_class)
        return Response(document, headers={"ETag": etag_of(document)} if with_etag else None)

    def locked(self) -> Any:
        """Return the row that the address names, locked for update.

        Raises ChangedSince if the request's If-Match differs from the row's ETag.
        """
        row_id = self.kwargs[str(self.lookup_url_kwarg)]
        row = get_object_or_404(self.get_queryset().select_for_update(), pk=row_id)
        if "If-Match" in self.request.headers:
            require_match(self.request, self.document(row))
        return row

    def change(self, row: Any, service: Callable[[Any], Model], **options: Any) -> Response:
        """Change a row, log it, and return the response with the row.

        Args:
            row: the row.
            service: changes it, and returns the changed object.
            options: of `changed`.
        """
        before = row_state(row)
        return self.changed(service(row), before, **options)

    def delete_row(self, row: Any, service: Callable[[Any], object]) -> Response:
        """Delete a row by a function, log it, and return the response."""
        self.log(row, before=row_state(row))
        service(row)
        return Response(status=204)

    def merge(self, row: Any, fields: Mapping[str, Any], serializer_class: Any = None) -> Response:
        """Set fields of a locked row, log the change, and return the response with the row.

        Metadata is merged by RFC 7396 (JSON Merge Patch), and then checked as that of messages.
        """
        before, values = row_state(row), dict(fields)
        if "metadata" in values:
            merged = merge_metadata(row.metadata, values["metadata"])
            values["metadata"] = metadata_argument(merged) or {}
        for name, value in values.items():
            setattr(row, name, value)
        row.save(update_fields=[*values])
        return self.changed(row, before, serializer_class)

    def created(
        self, row: Model, *, is_new: bool = True, status: int = 201, with_etag: bool = False
    ) -> Response:
        """Log a row as created, or as shown if it existed, and return the response with it."""
        self.log_created(row, is_new=is_new)
        document = self.document(row)
        headers = {"Location": document["url"]}
        if with_etag:
            headers["ETag"] = etag_of(document)
        return Response(document, status=status, headers=headers)

    def create_once(self, create: Callable[[], UUID], **options: Any) -> Response:
        """Call `create` once for each Idempotency-Key, and return the response with its row."""
        created_id, is_new = self.idempotency.once(create)
        row = get_object_or_404(super().get_queryset(), pk=created_id)
        return self.created(row, is_new=is_new, **options)


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
    """The name of a row's agent, from the names that `with_agent_names` read.

    Args:
        column: the attribute with the agent's id. Without an agent the name is null if that is
            allowed, else empty.
    """

    def __init__(self, column: str = "agent_id", **options: Any) -> None:
        self.column = column
        super().__init__(**options)

    def get_attribute(self, instance: Any) -> str | None:
        """Return the name."""
        name: str | None = self.context["agent_names"].get(getattr(instance, self.column))
        return None if name is None and self.allow_null else name or ""


def with_agent_names(serializer: Any) -> Any:
    """Read the names of the agents of a serializer's rows into its context, and return it."""
    is_list = isinstance(serializer, serializers.ListSerializer)
    rows = serializer.instance if is_list else [serializer.instance]
    fields = (serializer.child if is_list else serializer).fields.values()
    columns = [field.column for field in fields if isinstance(field, AgentNameField)]
    ids = {getattr(row, column) for column in columns for row in rows if row is not None}
    serializer._context["agent_names"] = agent_names(ids - {None})
    return serializer


def agent_names(agent_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return the names of these agents."""
    return dict(Agent.objects.filter(pk__in=set(agent_ids)).values_list("pk", "name"))


def etag_of(document: Any) -> str:
    """Return the tag of a resource's state, from its JSON."""
    text = json.dumps(document, cls=JSONEncoder, sort_keys=True)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def etag_response(request: Request, document: Any) -> HttpResponseBase:
    """Return the response to a GET with the ETag; 304 if If-None-Match has this ETag."""
    etag = etag_of(document)
    response = Response(document, headers={"ETag": etag})
    conditional = get_conditional_response(request._request, etag, response=response)
    return cast(HttpResponseBase, conditional)


def require_match(request: Request, document: Any) -> None:
    """Raise ChangedSince if the request's If-Match differs from the ETag of the document.

    Lock the rows before, so that they do not change in between. Weak tags match too: gzip makes
    tags weak, and these tags identify the state, not the bytes.
    """
    if_match = request.headers.get("If-Match", "*")
    tags = [tag.removeprefix("W/") for tag in parse_etags(if_match)]
    if tags != ["*"] and etag_of(document) not in tags:
        raise ChangedSince("It was changed since you read it. Read it again and decide anew.")
