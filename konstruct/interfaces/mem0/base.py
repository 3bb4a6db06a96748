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


def not_offered(what: str) -> Callable[..., HttpResponse]:
    """Return a view that says that Konstruct does not have this, and what it has instead."""

    @csrf_exempt
    def view(request: HttpRequest, **_: Any) -> HttpResponse:
        detail = f"Konstruct does not offer this: {what}"
        return problem_response(request, Problem(501, "not-offered", detail))

    return view


@csrf_exempt
def unknown(request: HttpRequest) -> HttpResponse:
    """Answer a path that mem0 may have, and this does not."""
    detail = (
        "There is nothing at this address. The id of a memory is a UUID. A client that can choose"
        " lists and searches with api_version v2. docs/mem0.md says what of mem0 there is."
    )
    return problem_response(request, Problem.of_status(404, detail))
