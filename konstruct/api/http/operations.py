"""What a method of a view does: who may call it, what it checks, and what the log records."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeVar

from drf_spectacular.utils import OpenApiParameter
from rest_framework.serializers import Serializer

from konstruct.api.http.bodies import NoParametersSerializer, StrictSerializer
from konstruct.api.models import KeyScope
from tenants.audit.models import Action

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
