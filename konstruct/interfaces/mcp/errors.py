"""The path of the MCP endpoint, and JSON-RPC responses with errors."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse, JsonResponse

from konstruct.api.http.problems import Problem, current_request_id

ENDPOINT: Final = "/mcp"
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
INTERNAL_ERROR: Final = -32603


class RpcError(Exception):
    """A JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def error_response(request: HttpRequest, problem: Problem) -> HttpResponse:
    """Return the problem as a JSON-RPC error, with the problem document as its data."""
    if problem.kind == "malformed-body":
        code = PARSE_ERROR
    else:
        code = INTERNAL_ERROR if problem.status >= 500 else INVALID_REQUEST
    message = " ".join([problem.detail, *(error.detail for error in problem.errors[:1])])
    document = problem.as_json(path=request.path, request_id=current_request_id())
    return rpc_response(
        {"error": {"code": code, "message": message, "data": document}},
        status=problem.status,
        headers=dict(problem.headers),
    )


def rpc_response(
    body: dict[str, Any],
    *,
    request_id: int | str | None = None,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> HttpResponse:
    """Return a JSON-RPC response. It is ASCII: an id may hold half of a surrogate pair."""
    response = JsonResponse(
        {"jsonrpc": "2.0", "id": request_id, **body}, status=status, headers=headers
    )
    response.is_problem_document = True  # type: ignore[attr-defined]  # for the middleware
    return response
