"""Converts exceptions to problem documents: the only place that maps them to status codes."""

import logging
import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from django.conf import settings
from django.core.exceptions import (
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
)
from django.http import Http404, HttpResponse
from rest_framework import exceptions as drf
from rest_framework.views import set_rollback

from konstruct.api.auth.keys import KeyInvalid, KeyTooWide
from konstruct.api.auth.permissions import OutsideOfKey
from konstruct.api.http.pagination import InvalidCursor
from konstruct.api.http.problems import (
    DEFAULTS,
    MAX_ERRORS,
    MAX_VALUE_CHARACTERS,
    OTHER_KINDS,
    TYPE_PREFIX,
    ChangedSince,
    FieldError,
    Problem,
    Refusal,
    problem_response,
)
from konstruct.llm.exceptions import LLMError, LLMUnavailable
from konstruct.orchestrator import exceptions as orchestrator
from konstruct.orchestrator.identities.erasure_requests import ReasonNamesPerson, ThreadOfOthers
from memory import exceptions as memory
from memory.exceptions import CheckpointRefused, UnreadableSession
from tenants import exceptions, outages, serving
from tenants.audit.people import PersonBeingErased
from tenants.http import note_outage
from tenants.limits.quotas import QuotaExceeded
from tenants.log_context import logged_path

logger = logging.getLogger(__name__)

# Errors of Konstruct, with their status, kind of problem and field of the request.
KONSTRUCT_ERRORS: dict[type[exceptions.KonstructError], tuple[int, str, str]] = {
    orchestrator.AgentNotFound: (422, "unknown-agent", "agent"),
    orchestrator.IdempotencyKeyReused: (422, "idempotency-key-reused", "Idempotency-Key"),
    orchestrator.Busy: (503, "unavailable", ""),
    orchestrator.IdempotencyKeyInUse: (409, "idempotency-key-in-use", "Idempotency-Key"),
    orchestrator.RowNotFound: (404, "not-found", ""),
    orchestrator.EscalationOver: (409, "already-resolved", ""),
    orchestrator.AlreadyDecided: (409, "already-decided", "approve"),
    orchestrator.NothingToLink: (409, "nothing-to-link", "user_id"),
    orchestrator.NothingToEscalate: (422, "unknown-thread", "thread_id"),
    orchestrator.NothingToHandOver: (422, "unknown-agent", "to_agent"),
    memory.FactNotFound: (404, "not-found", ""),
    memory.FactBusy: (503, "unavailable", ""),
    memory.DuplicateFact: (409, "duplicate-fact", "content"),
    orchestrator.TooManyQuestions: (409, "too-many-questions", ""),
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
    UnreadableSession: (422, "unreadable-session", "thread_id"),
    CheckpointRefused: (422, "unreadable-session", "thread_id"),
    OutsideOfKey: (403, "outside-of-key", "user_id"),
    KeyTooWide: (403, "outside-of-key", ""),
    KeyInvalid: (400, "invalid-fields", ""),
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
    set_rollback()
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
