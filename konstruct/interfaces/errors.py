"""Errors in the formats of mem0's, MCP's and OpenAI's clients.

Their JSON is ASCII, because values of a request may hold halves of surrogate pairs.
"""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse, JsonResponse

from konstruct.api.http import problems

MCP_ENDPOINT: Final = "/mcp"
# Clients of mem0 show only `detail`. It names this many field errors.
MAX_FIELD_ERRORS_IN_DETAIL: Final = 5


def mem0_error(request: HttpRequest, problem: problems.Problem) -> HttpResponse:
    """Return a problem in mem0's form: JSON with `detail`."""
    document = problem.as_json(path=request.path, request_id=problems.current_request_id())
    if errors := document.get("errors"):
        details = (f"{error['field']}: {error['detail']}" for error in errors)
        first = [*details][:MAX_FIELD_ERRORS_IN_DETAIL]
        document["detail"] = " ".join(first)[: problems.MAX_DETAIL_CHARACTERS]
    return JsonResponse(document, status=problem.status, headers=dict(problem.headers))


PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
INTERNAL_ERROR: Final = -32603


def mcp_error(request: HttpRequest, problem: problems.Problem) -> HttpResponse:
    """Return a problem as a JSON-RPC error, with the problem document as its data."""
    if problem.kind == "malformed-body":
        code = PARSE_ERROR
    else:
        code = INTERNAL_ERROR if problem.status >= 500 else INVALID_REQUEST
    message = " ".join([problem.detail, *(error.detail for error in problem.errors[:1])])
    data = problem.as_json(path=request.path, request_id=problems.current_request_id())
    error = {"code": code, "message": message, "data": data}
    return JsonResponse(
        {"jsonrpc": "2.0", "id": None, "error": error},
        status=problem.status,
        headers=dict(problem.headers),
    )


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


def openai_error(request: HttpRequest, problem: problems.Problem) -> HttpResponse:
    """Return a problem as OpenAI's clients read it.

    They retry after a 409 and any 5xx, unless a header forbids it.
    """
    status, _ = _status_and_code(problem)
    headers = dict(problem.headers)
    if status == 409 and "Retry-After" not in headers:
        headers["X-Should-Retry"] = "false"
    return JsonResponse(openai_document(problem), status=status, headers=headers)


def openai_document(problem: problems.Problem) -> dict[str, Any]:
    """Return the JSON of a problem: `{"error": {"message", "type", "param", "code"}}`."""
    status, code = _status_and_code(problem)
    default_type = "invalid_request_error" if status < 500 else "server_error"
    fields = [_PARAMETERS.get(error.field, error.field)[:200] for error in problem.errors]
    details = [error.document()["detail"] for error in problem.errors]
    # Programs show the message to the person who wrote to the agent.
    if (message := problem.members.get("message_for_people")) is None:
        message = problem.as_json(path="", request_id="")["detail"]
        if details and problem.detail not in details:
            named = zip(fields, details, strict=True)
            message = " ".join(f"{field}: {detail}" for field, detail in named)
    return {
        "error": {
            "message": message,
            "type": _QUOTA if code == _QUOTA else _TYPES.get(status, default_type),
            "param": fields[0] if fields else None,
            "code": code,
        }
    }


class InvalidParameter(problems.Refusal):
    """A parameter of a request to OpenAI's interface is invalid."""

    def __init__(self, parameter: str, detail: str, *, code: str = "invalid_value") -> None:
        error = problems.FieldError(parameter, detail)
        super().__init__(problems.Problem(400, code, detail, (error,)))


def _status_and_code(problem: problems.Problem) -> tuple[int, str]:
    if problem.kind == "quota-exceeded":
        return problem.status, _QUOTA
    # There is no 422 among OpenAI's errors.
    status = 400 if problem.status == 422 else problem.status
    return _STATUSES_AND_CODES.get(problem.kind, (status, problem.kind.replace("-", "_")))
