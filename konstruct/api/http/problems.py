"""Problem documents (RFC 9457), which answer every error below /api/."""

import http.client
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from structlog.contextvars import get_contextvars

from tenants.exceptions import KonstructError
from tenants.http import leave_log_to_request

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:konstruct:problem:"
# Longer values are not sent back, and longer texts are cut.
MAX_VALUE_CHARACTERS = 100
MAX_NAME_CHARACTERS = 200
MAX_DETAIL_CHARACTERS = 1_000
# A body of 2 MB can hold a hundred thousand mistakes.
MAX_ERRORS = 50

DEFAULTS: Final = {
    400: ("bad-request", "The request cannot be understood. Check its host, headers and body."),
    401: ("unauthenticated", "Send an API key: Authorization: Bearer ks_…"),
    402: ("quota-exceeded", "A quota is used up that does not begin anew with the month."),
    403: ("forbidden", "You may not do this."),
    404: (
        "not-found",
        "There is nothing at this address. In addresses, ids are UUIDs and not names. "
        "The API's description is at /api/docs/.",
    ),
    405: ("method-not-allowed", "This address does not know that method; see the Allow header."),
    406: ("not-acceptable", "The API speaks application/json only; send Accept: application/json."),
    408: ("request-timeout", "The request's body did not arrive in time. Send it again."),
    409: ("conflict", "The request contradicts the current state."),
    412: ("changed-since", "It was changed since you read it. Read it again and decide anew."),
    413: ("body-too-large", "The request's body is too large."),
    414: ("address-too-long", "The request's address is too long. Send long values in the body."),
    415: ("unsupported-media-type", "Send the body as Content-Type: application/json."),
    422: ("unprocessable", "The request was understood and cannot be done."),
    429: ("too-many-requests", "Too many requests. Wait for as long as Retry-After says."),
    503: ("unavailable", "Something that the API needs is not running. Try again in a moment."),
    500: ("internal-error", "The server failed. Its log has the error under this request_id."),
}

# Kinds that neither a status nor an error of Konstruct has.
OTHER_KINDS: Final = {
    "invalid-fields": "A field, header or parameter is invalid: `errors` names each.",
    "malformed-body": "The body is not readable JSON.",
    "missing-slash": "Addresses end with a slash.",
    "reply-interrupted": "The reply was interrupted, and is generated again.",
}


@dataclass(frozen=True)
class FieldError:
    """The error of one field, header or query parameter, with its remedy."""

    field: str
    detail: str
    value: Any = None

    def document(self) -> dict[str, Any]:
        """Return the error as JSON, with the value if it is short and neither object nor list."""
        simple = isinstance(self.value, bool | int | float | str)
        shown = simple and len(str(self.value)) <= MAX_VALUE_CHARACTERS
        return {
            "field": _truncate(self.field, MAX_NAME_CHARACTERS),
            "detail": _truncate(self.detail, MAX_DETAIL_CHARACTERS),
        } | ({"value": self.value} if shown else {})


@dataclass(frozen=True)
class Problem:
    """One error of the API."""

    status: int
    kind: str
    detail: str
    errors: tuple[FieldError, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, Any] = field(default_factory=dict)
    """Further members of the document, as RFC 9457 allows."""

    @classmethod
    def of_status(
        cls,
        status: int,
        detail: str = "",
        *,
        errors: tuple[FieldError, ...] = (),
        headers: Mapping[str, str] | None = None,
    ) -> "Problem":
        """Return the problem of an HTTP status, with the given or the default detail."""
        kind, default_detail = DEFAULTS.get(status, DEFAULTS[400 if status < 500 else 500])
        return cls(status, kind, detail or default_detail, errors, headers or {})

    def as_json(self, *, path: str, request_id: str) -> dict[str, Any]:
        """Return the problem document for a request of the path."""
        document = {
            "type": TYPE_PREFIX + self.kind,
            "title": http.client.responses.get(self.status, "Error"),
            "status": self.status,
            "detail": _truncate(self.detail, MAX_DETAIL_CHARACTERS),
            "instance": path,
            "request_id": request_id,
            **self.members,
        }
        if self.errors:
            document["errors"] = [error.document() for error in self.errors[:MAX_ERRORS]]
        return document


class Refusal(Exception):
    """Refuses a request with a problem document."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


class ChangedSince(KonstructError):
    """The resource was changed since the caller read it."""


def _truncate(text: str, max_characters: int) -> str:
    return text if len(text) <= max_characters else f"{text[:max_characters]}…"


def problem_document(request: HttpRequest, problem: Problem) -> HttpResponse:
    """Return the problem as an HTTP response.

    The JSON is ASCII, since values of a request may hold lone surrogates, which UTF-8 cannot
    encode.
    """
    return JsonResponse(
        problem.as_json(path=request.path, request_id=current_request_id()),
        status=problem.status,
        content_type=MEDIA_TYPE,
        headers=dict(problem.headers),
    )


def current_request_id() -> str:
    """Return the id of the current request; `-` outside of requests."""
    return get_contextvars().get("request_id", "-")


API_PREFIX: Final = "/api/"

ErrorFormat = Callable[[HttpRequest, Problem], HttpResponse]

_error_formats: dict[str, ErrorFormat] = {API_PREFIX: problem_document}


def register_error_format(prefix: str, error_format: ErrorFormat) -> None:
    """Accept API keys for paths with a prefix, and answer errors there in a format.

    The longest matching prefix has precedence. Call it in `AppConfig.ready`.
    """
    _error_formats[prefix] = error_format


def accepts_api_keys(path: str) -> bool:
    """Return whether an API key may choose the tenant of a request for this path."""
    return _error_format_of(path) is not None


def problem_response(request: HttpRequest, problem: Problem) -> HttpResponse:
    """Return the problem as a response in the error format of the request's path."""
    response = (_error_format_of(request.path) or problem_document)(request, problem)
    response.is_problem_document = True  # type: ignore[attr-defined]  # for the middleware
    leave_log_to_request(request, response)
    return response


def _error_format_of(path: str) -> ErrorFormat | None:
    prefix = max(
        (prefix for prefix in _error_formats if path.startswith(prefix)), key=len, default=None
    )
    return None if prefix is None else _error_formats[prefix]
