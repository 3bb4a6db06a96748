"""What mem0's endpoints share: keys, the form of errors, what is not offered."""

import json
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from konstruct.api.auth.authentication import ApiKeyAuthentication
from konstruct.api.http.errors.addresses import problem_response
from konstruct.api.http.errors.problems import LONGEST_DETAIL, Problem
from konstruct.api.http.request_id import current_request_id
from konstruct.api.http.views import ApiView

# Of what is wrong with a request, so much is in the one sentence that clients show.
MOST_TOLD = 5


class Mem0View(ApiView):
    """A view for mem0's clients, which come with an API key and keep to what it is bound to."""

    authentication_classes = [ApiKeyAuthentication]
    keeps_to_binding = True
    # docs/mem0.yaml describes them.
    schema = None


def error_form(request: HttpRequest, problem: Problem) -> HttpResponse:
    """Return a problem as clients of mem0 read it: JSON, whose `detail` says all of it.

    In ASCII, since what a caller sent may hold halves of surrogate pairs.
    """
    document = problem.as_json(path=request.path, request_id=current_request_id())
    if errors := document.get("errors"):
        told = (f"{each['field']}: {each['detail']}" for each in errors[:MOST_TOLD])
        document["detail"] = " ".join(told)[:LONGEST_DETAIL]
    return HttpResponse(
        json.dumps(document),
        status=problem.status,
        content_type="application/json",
        headers=dict(problem.headers),
    )


def not_offered(remedy: str) -> Callable[..., HttpResponse]:
    """Return a view that answers 501 with the name of the missing feature and the remedy."""

    @csrf_exempt
    def view(request: HttpRequest, **_: Any) -> HttpResponse:
        detail = f"Konstruct does not offer this: {remedy}"
        return problem_response(request, Problem(501, "not-offered", detail))

    return view


@csrf_exempt
def unknown(request: HttpRequest) -> HttpResponse:
    """Answer 404 to any other path."""
    detail = (
        "Nothing is at this address. The id of a memory is a UUID. Clients of mem0 older than"
        " version 2 must be upgraded. docs/mem0.md lists the supported methods."
    )
    return problem_response(request, Problem.of_status(404, detail))
