"""The MCP endpoint: each POST has one JSON-RPC message and one answer. There are no sessions."""

import logging
from contextlib import nullcontext
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from konstruct.api.auth.authentication import ApiKeyAuthentication
from konstruct.api.auth.permissions import require_scope
from konstruct.api.http.access_log import READ_ACTIONS, BodyOperation, record_refusal
from konstruct.api.http.exceptions import problem_of
from konstruct.api.http.problems import Problem
from konstruct.api.http.views import ApiView
from konstruct.api.models import KeyScope
from konstruct.interfaces.mcp.errors import ENDPOINT, RpcError, rpc_response
from konstruct.interfaces.mcp.tools import Tool, ToolResult
from tenants import transaction
from tenants.outages import is_outage

logger = logging.getLogger(__name__)

# RFC 9728 appends the path of the endpoint to the well-known path.
METADATA = "/.well-known/oauth-protected-resource"
METADATA_OF_ENDPOINT = METADATA + ENDPOINT
# The error of a tool call names this many invalid arguments.
MAX_FIELD_ERRORS = 10


class McpKeyAuthentication(ApiKeyAuthentication):
    """An API key as a bearer token; a 401 has the address of the RFC 9728 metadata."""

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge of a 401."""
        metadata = request.build_absolute_uri(METADATA_OF_ENDPOINT)
        return f'{super().authenticate_header(request)}, resource_metadata="{metadata}"'


class HasKey(BasePermission):
    """Any key is allowed. Its scopes decide which tools it may call."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return whether there is a key."""
        return bool(request.user)


class McpView(ApiView):
    """The MCP endpoint. The access log has each tool call with its own action."""

    authentication_classes = [McpKeyAuthentication]
    permission_classes = [HasKey]
    http_method_names = ["post"]
    records_itself = True
    schema = None  # docs/mcp.yaml describes it

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        """Refuse pages of other sites first."""
        _refuse_foreign_origin(request)
        super().initial(request, *args, **kwargs)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Answer 405 and not 406 to a client that asks for a stream by GET."""
        return super().perform_content_negotiation(request, force or request.method != "POST")

    def post(self, request: Request) -> HttpResponse:
        """Answer a request; accept a notification."""
        # Imported here: it loads pydantic's models of all revisions, which only this view needs.
        from konstruct.interfaces.mcp.protocol import answer, read_message

        try:
            message = read_message(request.data, request.headers)
        except RpcError as error:
            sent_id = request.data.get("id") if isinstance(request.data, dict) else None
            is_id = isinstance(sent_id, int | str) and not isinstance(sent_id, bool)
            return _error(error, status=400, request_id=sent_id if is_id else None)
        if message.id is None:
            return HttpResponse(status=202)

        try:
            result = answer(message, self.caller, self._call)
        except RpcError as error:
            return _error(error, status=message.status_of(error), request_id=message.id)
        return rpc_response({"result": result}, request_id=message.id)

    def _call(self, tool: Tool, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool. A change and its entry in the access log are one transaction."""
        http: Any = self.request._request
        http.body_operation = BodyOperation(tool.action, tool.subject, arguments)
        is_read = tool.action in READ_ACTIONS
        try:
            require_scope(self.caller, tool.scope)
            with nullcontext() if is_read else transaction.atomic():
                outcome = tool.run(self.caller, arguments)
                http.body_operation = BodyOperation(
                    tool.action, outcome.subject or tool.subject, arguments
                )
                self.log(
                    outcome.row,
                    action=outcome.action,
                    before=outcome.before,
                    after=outcome.after,
                    tool=tool.name,
                    **outcome.detail,
                )
                self.write_log_entry(outcome.document if is_read else None)
        except Exception as error:  # the model gets the error, and the log has it
            if is_outage(error):
                raise
            problem = problem_of(error, data=arguments, is_bound=self.caller.is_bound)
            if problem.status >= 500:
                logger.exception("the tool %s failed", tool.name)
            record_refusal(self.request, self.caller, problem.status)
            self.mark_recorded()
            return _error_text(problem), None
        return outcome.text, dict(tool.result_serializer(outcome.document).data)


def _error_text(problem: Problem) -> str:
    """Return the errors of a problem as text, by which a model corrects its arguments."""
    # The detail of invalid fields only repeats the errors.
    lines = [] if problem.kind == "invalid-fields" and problem.errors else [problem.detail]
    for error in problem.errors[:MAX_FIELD_ERRORS]:
        if error.detail != problem.detail:
            document = error.document()
            lines.append(f"{document['field']}: {document['detail']}")
    return "\n".join(lines)


def _error(error: RpcError, *, status: int, request_id: int | str | None) -> HttpResponse:
    body = {"code": error.code, "message": str(error)}
    if error.data is not None:
        body["data"] = error.data
    return rpc_response({"error": body}, request_id=request_id, status=status)


def _refuse_foreign_origin(request: Request) -> None:
    """Raise PermissionDenied for a page of another site, by the browser's Origin header.

    ALLOWED_HOSTS refuses a page of a host name that was pointed at this server.
    """
    origin = request.headers.get("Origin")
    if origin is None or origin in settings.CORS_ALLOWED_ORIGINS:
        return
    host = request.get_host()
    if origin not in (f"http://{host}", f"https://{host}"):
        raise PermissionDenied(
            "Pages of this origin may not use the MCP server. CORS_ALLOWED_ORIGINS names those "
            "that may."
        )


@require_safe
def resource_metadata(request: HttpRequest) -> JsonResponse:
    """Return the metadata of RFC 9728: the endpoint takes API keys as bearer tokens."""
    return JsonResponse(
        {
            "resource": request.build_absolute_uri(ENDPOINT),
            "resource_name": "Konstruct",
            "bearer_methods_supported": ["header"],
            "scopes_supported": [KeyScope.READ.value, KeyScope.WRITE.value],
        }
    )
