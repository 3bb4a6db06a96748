"""Problem documents (RFC 9457), which answer every error below /api/.

`KONSTRUCT_ERRORS` is the only place that maps exceptions to status codes.
"""

import http.client
import logging
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import (
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
)
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from rest_framework import exceptions as drf
from structlog.contextvars import get_contextvars

from konstruct.api.auth import authentication, keys
from konstruct.llm.completions import LLMError, LLMUnavailable
from konstruct.orchestrator import exceptions as orchestrator
from konstruct.orchestrator.identities.erasure_requests import ReasonNamesPerson, ThreadOfOthers
from memory import exceptions as memory
from tenants import exceptions, outages, serving
from tenants.audit.people import PersonBeingErased
from tenants.http import leave_log_to_request, note_outage
from tenants.limits.quotas import QuotaExceeded
from tenants.traces import logged_path

logger = logging.getLogger(__name__)

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


class InvalidCursor(drf.NotFound):
    """A cursor that this list of this tenant, in this order, did not create."""

    default_detail = (
        "This is not a cursor of this list in this order. Use `next` or `previous` unchanged."
    )


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


class ChangedSince(exceptions.KonstructError):
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


# Errors of Konstruct, with their status, kind of problem and field of the request.
KONSTRUCT_ERRORS: dict[type[exceptions.KonstructError], tuple[int, str, str]] = {
    orchestrator.AgentNotFound: (422, "unknown-agent", "agent"),
    orchestrator.IdempotencyKeyReused: (422, "idempotency-key-reused", "Idempotency-Key"),
    orchestrator.Busy: (503, "unavailable", ""),
    orchestrator.IdempotencyKeyInUse: (409, "idempotency-key-in-use", "Idempotency-Key"),
    orchestrator.RowNotFound: (404, "not-found", ""),
    orchestrator.EscalationOver: (409, "already-resolved", ""),
    orchestrator.AlreadyDecided: (409, "already-decided", "approve"),
    orchestrator.ProgramToolsInvalid: (400, "invalid-fields", ""),
    orchestrator.NothingToLink: (409, "nothing-to-link", "user_id"),
    orchestrator.NothingToEscalate: (422, "unknown-thread", "thread_id"),
    orchestrator.NothingToHandOver: (422, "unknown-agent", "to_agent"),
    memory.FactNotFound: (404, "not-found", ""),
    memory.FactBusy: (503, "unavailable", ""),
    memory.DuplicateFact: (409, "duplicate-fact", "content"),
    orchestrator.TooManyQuestions: (409, "too-many-questions", ""),
    orchestrator.LimitReached: (409, "limit-reached", ""),
    orchestrator.ExtractionFailed: (422, "extraction-failed", ""),
    orchestrator.ExtractionLimitReached: (422, "extraction-limit-reached", ""),
    orchestrator.WrongState: (409, "wrong-state", ""),
    orchestrator.NothingToRetry: (409, "wrong-state", ""),
    LLMUnavailable: (503, "unavailable", ""),
    LLMError: (422, "model-failed", ""),
    memory.WrongFactState: (409, "wrong-state", ""),
    memory.OwnProposal: (409, "own-proposal", ""),
    memory.SlotTaken: (409, "slot-taken", ""),
    PersonBeingErased: (409, "being-erased", "user_id"),
    orchestrator.ImportRefused: (422, "import-refused", ""),
    ThreadOfOthers: (422, "thread-of-others", "threads"),
    ReasonNamesPerson: (400, "invalid-fields", "reason"),
    memory.UnreadableSession: (422, "unreadable-session", "thread_id"),
    memory.CheckpointRefused: (422, "unreadable-session", "thread_id"),
    authentication.OutsideOfKey: (403, "outside-of-key", "user_id"),
    keys.KeyTooWide: (403, "outside-of-key", ""),
    keys.KeyInvalid: (400, "invalid-fields", ""),
    ChangedSince: (412, "changed-since", "If-Match"),
    orchestrator.AgentNameTaken: (409, "name-taken", "name"),
    orchestrator.AgentContradictory: (422, "contradictory-fields", ""),
    orchestrator.AgentInvalid: (400, "invalid-fields", ""),
    orchestrator.LanguageModelInvalid: (422, "unprocessable", ""),
    memory.InvalidArgument: (400, "invalid-fields", ""),
}
# Its value is not repeated: the key of a language model.
NOT_REPEATED = "key"
_KINDS = {
    # Of several errors of one kind, the first one describes it.
    **{
        kind: " ".join(str(error.__doc__).partition("\n\n")[0].split())
        for error, (_, kind, _) in reversed(KONSTRUCT_ERRORS.items())
    },
    **OTHER_KINDS,
    **dict(DEFAULTS.values()),
}
# Every type of a problem, and when it occurs.
PROBLEM_TYPES = [(TYPE_PREFIX + kind, _KINDS[kind]) for kind in sorted(_KINDS)]
# With status 409 and Retry-After.
TEMPORARY_CONFLICTS = (orchestrator.IdempotencyKeyInUse, PersonBeingErased)


def problem_handler(error: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """Return the response to an error, in the format of its path (DRF's EXCEPTION_HANDLER)."""
    request = context["request"]
    is_bound = isinstance(error, QuotaExceeded) and context["view"].caller.is_bound
    # The body, if it was parsed before the error.
    problem = problem_of(error, data=getattr(request, "_full_data", None), is_bound=is_bound)
    if isinstance(error, Http404) and context["kwargs"]:
        rows = " and ".join(
            f"{name.removesuffix('_id').replace('_', ' ')} {str(value)[:MAX_VALUE_CHARACTERS]!r}"
            for name, value in context["kwargs"].items()
        )
        problem = Problem.of_status(404, f"There is no {rows} that this caller may see.")
    if problem.status == 503:
        note_outage(request._request, error)
    elif problem.status >= 500:
        logger.error("%s %s failed", request.method, logged_path(request._request), exc_info=error)
    return problem_response(request._request, problem)


def problem_of(error: Exception, *, data: Any = None, is_bound: bool = False) -> Problem:
    """Convert an error to a problem document.

    Args:
        error: the error.
        data: the body; its values are shown.
        is_bound: whether the caller's key is bound, and may therefore not see the tenant's usage.
    """
    if outages.is_outage(error):
        return Problem.of_status(503, headers={"Retry-After": str(outages.ServerDown.retry_after)})
    if isinstance(error, exceptions.TenantPaused):
        return _paused_problem(error)
    if isinstance(error, QuotaExceeded):
        return quota_problem(error, with_numbers=not is_bound)
    if isinstance(error, exceptions.KonstructError):
        mapped = (one for cls, one in KONSTRUCT_ERRORS.items() if isinstance(error, cls))
        status, kind, field = next(mapped, (500, "", ""))
        if status == 500:
            return Problem.of_status(500)
        # The messages by field; the name `__all__` is the body.
        named = {field: [str(error)]} if field else getattr(error, "fields", {})
        errors = tuple(
            FieldError("body" if name == "__all__" else name, " ".join(messages))
            for name, messages in named.items()
        )
        is_temporary = status == 503 or isinstance(error, TEMPORARY_CONFLICTS)
        wait = math.ceil(getattr(error, "retry_after", None) or 1)
        headers = {"Retry-After": str(wait)} if is_temporary else {}
        return Problem(status, kind, str(error), errors, headers)
    if isinstance(error, Refusal):
        return error.problem
    if isinstance(error, Http404):
        return Problem.of_status(404)
    if isinstance(error, PermissionDenied):
        return Problem.of_status(403)
    if isinstance(error, RequestDataTooBig):
        limit = f"A body has at most {settings.DATA_UPLOAD_MAX_MEMORY_SIZE:,} bytes."
        too_big = FieldError("body", f"{limit} Send less in one request.")
        return Problem.of_status(413, limit, errors=(too_big,))
    if isinstance(error, TooManyFieldsSent):
        limit = f"An address has at most {settings.DATA_UPLOAD_MAX_NUMBER_FIELDS:,} parameters."
        return Problem.of_status(400, limit, errors=(FieldError("request", limit),))
    if isinstance(error, SuspiciousOperation):  # such as thousands of query parameters
        return Problem.of_status(400, errors=(FieldError("request", str(error)),))
    if isinstance(error, drf.ValidationError):
        first = tuple(islice(_field_errors(error.detail, data), MAX_ERRORS + 1))
        errors = first[:MAX_ERRORS]
        fields = ", ".join(dict.fromkeys(field_error.field for field_error in errors))
        truncation_note = f" These are the first {MAX_ERRORS}." if len(first) > MAX_ERRORS else ""
        return Problem(
            400, "invalid-fields", f"Invalid: {fields}. See errors.{truncation_note}", errors
        )
    if isinstance(error, drf.ParseError):
        unreadable = FieldError("body", f"{error.detail} Send one JSON object in UTF-8.")
        return Problem(400, "malformed-body", "The body is not readable JSON.", (unreadable,))
    if isinstance(error, InvalidCursor):
        return Problem.of_status(404, str(error), errors=(FieldError("cursor", str(error)),))
    if isinstance(error, drf.APIException):
        headers = {}
        if auth_header := getattr(error, "auth_header", None):
            headers["WWW-Authenticate"] = auth_header
        if (seconds := getattr(error, "wait", None)) is not None:
            headers["Retry-After"] = str(math.ceil(seconds))
        has_detail = isinstance(error, drf.AuthenticationFailed | drf.PermissionDenied)
        detail = str(error.detail) if has_detail else ""
        return Problem.of_status(error.status_code, detail, headers=headers)
    if moved := serving.as_tenant_moving(error):
        return _paused_problem(moved)
    return Problem.of_status(500)


def _paused_problem(paused: exceptions.TenantPaused) -> Problem:
    return Problem.of_status(503, paused.public, headers={"Retry-After": str(paused.retry_after)})


def quota_problem(error: QuotaExceeded, *, with_numbers: bool) -> Problem:
    """Return the problem of a hard limit: 429 if it is reset later, 402 if it is never reset."""
    members: dict[str, Any] = {
        "resets_at": error.resets_at and error.resets_at.isoformat().replace("+00:00", "Z"),
        "message_for_people": error.for_people,
    }
    detail = error.for_people
    if with_numbers:
        detail = str(error)
        members |= {
            "quota": error.quota.value,
            "limit": f"{error.limit:f}",
            "used": f"{error.used:f}",
            "remedy": error.remedy,
        }
    wait = error.retry_after
    if wait is None:
        return Problem(402, "quota-exceeded", detail, members=members)
    # OpenAI's SDK repeats a 429 unless it is asked not to.
    headers = {"Retry-After": str(math.ceil(wait)), "X-Should-Retry": "false"}
    return Problem(429, "quota-exceeded", detail, headers=headers, members=members)


def _field_errors(detail: Any, data: Any, path: str = "") -> Iterator[FieldError]:
    """Flatten REST framework's nested error details; `a.b` is field b of field a."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            # DRF reports errors of the object as a whole under `non_field_errors`.
            here = path if name == "non_field_errors" else f"{path}.{name}" if path else str(name)
            is_shown = isinstance(data, Mapping) and name != NOT_REPEATED
            value = data.get(name) if is_shown else None
            yield from _field_errors(inner, value, here)
    elif isinstance(detail, list):
        for inner in detail:
            yield from _field_errors(inner, data, path)
    else:
        yield FieldError(path or "body", str(detail), data)
