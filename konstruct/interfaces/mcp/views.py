"""The MCP endpoint: each POST has one JSON-RPC message and one answer. There are no sessions."""

import logging
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request

from konstruct.api.auth import authentication
from konstruct.api.http import operations, problems, views
from konstruct.api.models import KeyScope
from konstruct.interfaces.errors import MCP_ENDPOINT
from konstruct.interfaces.mcp import tools
from tenants import outages, transaction

logger = logging.getLogger(__name__)

# RFC 9728 appends the path of the endpoint to the well-known path.
METADATA = "/.well-known/oauth-protected-resource"
METADATA_OF_ENDPOINT = METADATA + MCP_ENDPOINT
# The error of a tool call names this many invalid arguments.
MAX_FIELD_ERRORS = 10


class McpKeyAuthentication(authentication.ApiKeyAuthentication):
    """An API key as a bearer token; a 401 has the address of the RFC 9728 metadata."""

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge of a 401."""
        metadata = request.build_absolute_uri(METADATA_OF_ENDPOINT)
        return f'{super().authenticate_header(request)}, resource_metadata="{metadata}"'


class McpViewSet(views.ApiViewSet):
    """The MCP endpoint. The access log has each tool call with its own action."""

    authentication_classes = [McpKeyAuthentication]
    permission_classes = [IsAuthenticated]  # the scopes decide which tools a key may call
    http_method_names = ["post"]
    schema = None  # docs/mcp.yaml describes it
    called: operations.Operation | None = None

    @property
    def operation(self) -> operations.Operation | None:
        """The tool call in the request's body."""
        return self.called

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        """Refuse pages of other sites first, by the browser's Origin header.

        ALLOWED_HOSTS refuses a page of a host name that was pointed at this server.
        """
        host = request.get_host()
        own = (None, f"http://{host}", f"https://{host}", *settings.CORS_ALLOWED_ORIGINS)
        if request.headers.get("Origin") not in own:
            raise PermissionDenied(
                "Pages of this origin may not use the MCP server. CORS_ALLOWED_ORIGINS names those "
                "that may."
            )
        super().initial(request, *args, **kwargs)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Answer 405 and not 406 to a client that asks for a stream by GET."""
        return super().perform_content_negotiation(request, force or request.method != "POST")

    def answer(self, request: Request) -> HttpResponse:
        """Answer a request; accept a notification."""
        # Imported here: it loads pydantic's models of all revisions, which only this view needs.
        from konstruct.interfaces.mcp.protocol import respond

        status, document = respond(request.data, request.headers, self.caller, self._call)
        if document is None:
            return HttpResponse(status=status)
        response = JsonResponse(document, status=status)  # ASCII: halves of surrogate pairs
        response.is_problem_document = True  # type: ignore[attr-defined]  # for the middleware
        return response

    def _call(self, tool: tools.Tool, arguments: dict[str, Any]) -> tools.ToolResult:
        """Run a tool. A change and its entry in the access log are one transaction."""
        self.called = operations.Operation(tool.action, tool.subject)
        if isinstance(user_id := arguments.get("user_id"), str):
            self.caller.named["user_id"] = user_id  # for the access log
        is_read = tool.action in operations.READ_ACTIONS
        try:
            authentication.require_scope(self.caller, tool.scope)
            with nullcontext() if tool.own_transaction else transaction.atomic():
                outcome = tool.run(self.caller, arguments)
                self.called = replace(self.called, subject=outcome.subject or tool.subject)
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
            if outages.is_outage(error):
                raise
            problem = problems.problem_of(error, data=arguments, is_bound=self.caller.is_bound)
            if problem.status >= 500:
                logger.exception("the tool %s failed", tool.name)
            operations.record_refusal(self.request, self.caller, problem.status, self.called)
            self.mark_recorded()
            # By this text a model corrects its arguments. The detail of invalid fields only
            # repeats the errors.
            is_repeated = problem.kind == "invalid-fields" and bool(problem.errors)
            documents = [one.document() for one in problem.errors if one.detail != problem.detail]
            return "\n".join(
                [
                    *([] if is_repeated else [problem.detail]),
                    *(f"{one['field']}: {one['detail']}" for one in documents[:MAX_FIELD_ERRORS]),
                ]
            ), None
        return outcome.text, dict(tool.result_serializer(outcome.document).data)


@require_safe
def resource_metadata(request: HttpRequest) -> JsonResponse:
    """Return the metadata of RFC 9728: the endpoint takes API keys as bearer tokens."""
    return JsonResponse(
        {
            "resource": request.build_absolute_uri(MCP_ENDPOINT),
            "resource_name": "Konstruct",
            "bearer_methods_supported": ["header"],
            "scopes_supported": [KeyScope.READ.value, KeyScope.WRITE.value],
        }
    )
