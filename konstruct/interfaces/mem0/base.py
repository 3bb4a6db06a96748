"""The base of mem0's views, its error documents, and answers for routes that do not exist."""

from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from konstruct.api.auth.authentication import ApiKeyAuthentication
from konstruct.api.http import problems, views

# Clients show only `detail`. It names this many field errors.
MAX_FIELD_ERRORS_IN_DETAIL = 5


# Declares an operation. The callers are programs: no person has a permission for it. The scope
# `write` suffices to delete memories.
client_operation = partial(views.operation, permission=(), query=None)


class Mem0ViewSet(views.ApiViewSet):
    """Views for mem0's clients, which authenticate with an API key."""

    authentication_classes = [ApiKeyAuthentication]
    allows_bound_keys = True
    # docs/mem0.yaml describes these views.
    schema = None


def error_response(request: HttpRequest, problem: problems.Problem) -> HttpResponse:
    """Return a problem in mem0's form: JSON with `detail`.

    The JSON is ASCII: request values in it may hold halves of surrogate pairs.
    """
    document = problem.as_json(path=request.path, request_id=problems.current_request_id())
    if errors := document.get("errors"):
        details = (f"{error['field']}: {error['detail']}" for error in errors)
        first = [*details][:MAX_FIELD_ERRORS_IN_DETAIL]
        document["detail"] = " ".join(first)[: problems.MAX_DETAIL_CHARACTERS]
    return JsonResponse(document, status=problem.status, headers=dict(problem.headers))


@csrf_exempt
def not_offered(request: HttpRequest, **_: Any) -> HttpResponse:
    """Answer 501 to routes of mem0's clients that Konstruct does not have."""
    detail = (
        "Konstruct does not offer this: it has no exports, feedback, summaries, profiles, webhooks,"
        " organizations and projects. Read memories by search and get_all. The tenant's admin has"
        " its team, settings and access log."
    )
    return problems.problem_response(request, problems.Problem(501, "not-offered", detail))


@csrf_exempt
def unknown(request: HttpRequest) -> HttpResponse:
    """Answer 404 to any other path."""
    detail = (
        "Nothing is at this address. The id of a memory is a UUID. Clients of mem0 older than"
        " version 2 must be upgraded. docs/mem0.md lists the supported methods."
    )
    return problems.problem_response(request, problems.Problem.of_status(404, detail))
