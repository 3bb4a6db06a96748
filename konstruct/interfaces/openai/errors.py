"""Errors as OpenAI's clients read them: `{"error": {"message", "type", "param", "code"}}`."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse, JsonResponse

from konstruct.api.http.problems import FieldError, Problem, Refusal

PREFIX: Final = "/v1/"

# The status and the code of OpenAI's API for kinds of problems.
_STATUSES_AND_CODES: Final = {
    "unknown-agent": (404, "model_not_found"),
    "unauthenticated": (401, "invalid_api_key"),
    "too-many-requests": (429, "rate_limit_exceeded"),
}
# OpenAI's own word, as type and code, by which clients know that it is no use to repeat a request.
_QUOTA: Final = "insufficient_quota"
_TYPES: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
# The parameters of a request for our fields.
_PARAMETERS: Final = {
    "agent": "model",
    "user_id": "user",
    "thread_id": "metadata.thread_id",
    "content": "messages",
    "name": "messages",
}


def error_response(request: HttpRequest, problem: Problem) -> HttpResponse:
    """Return the problem as an HTTP response.

    OpenAI's clients retry after a 409 and any 5xx, unless a header forbids it. The JSON is ASCII:
    request values in it may hold halves of surrogate pairs.
    """
    status, _ = _status_and_code(problem)
    headers = dict(problem.headers)
    if status == 409 and "Retry-After" not in headers:
        headers["X-Should-Retry"] = "false"
    return JsonResponse(error_document(problem), status=status, headers=headers)


def error_document(problem: Problem) -> dict[str, Any]:
    """Return the JSON of a problem."""
    status, code = _status_and_code(problem)
    default_type = "invalid_request_error" if status < 500 else "server_error"
    field = problem.errors[0].field if problem.errors else None
    return {
        "error": {
            "message": _message(problem),
            "type": _QUOTA if code == _QUOTA else _TYPES.get(status, default_type),
            "param": None if field is None else _PARAMETERS.get(field, field)[:200],
            "code": code,
        }
    }


class InvalidParameter(Refusal):
    """A parameter of the request is invalid."""

    def __init__(self, parameter: str, detail: str, *, code: str = "invalid_value") -> None:
        super().__init__(Problem(400, code, detail, (FieldError(parameter, detail),)))


def _status_and_code(problem: Problem) -> tuple[int, str]:
    if problem.kind == "quota-exceeded":
        return problem.status, _QUOTA
    code = problem.kind.replace("-", "_")
    # There is no 422 among OpenAI's errors.
    return _STATUSES_AND_CODES.get(
        problem.kind, (400 if problem.status == 422 else problem.status, code)
    )


def _message(problem: Problem) -> str:
    """Return the problem's detail with the errors of its fields, or its text for people.

    Programs show it to the person who wrote the message.
    """
    if (text := problem.members.get("message_for_people")) is not None:
        return str(text)
    details = [error.document()["detail"] for error in problem.errors]
    if not details or problem.detail in details:
        return str(problem.as_json(path="", request_id="")["detail"])
    return " ".join(
        f"{_PARAMETERS.get(error.field, error.field)[:200]}: {text}"
        for error, text in zip(problem.errors, details, strict=True)
    )
