"""Addresses that are called with an API key, and the form in which errors are told at each."""

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse

from konstruct.api.http.errors.problems import Problem, problem_document
from tenants.http.refusals import leave_log_to_request

API_PREFIX: Final = "/api/"

ErrorForm = Callable[[HttpRequest, Problem], HttpResponse]

_forms: dict[str, ErrorForm] = {API_PREFIX: problem_document}


def register(prefix: str, form: ErrorForm) -> None:
    """Let addresses that begin so be called with API keys. Call it when the app is ready.

    Of prefixes of which one begins with another, the longer one counts.
    """
    _forms[prefix] = form


def takes_keys(path: str) -> bool:
    """Whether an API key may say which tenant a request for this path is for."""
    return _form_at(path) is not None


def problem_response(request: HttpRequest, problem: Problem) -> HttpResponse:
    """Return the problem as a response in the form of the request's address."""
    response = (_form_at(request.path) or problem_document)(request, problem)
    response.tells_problem = True  # type: ignore[attr-defined]  # for the middleware
    leave_log_to_request(request, response)
    return response


def _form_at(path: str) -> ErrorForm | None:
    prefix = max((each for each in _forms if path.startswith(each)), key=len, default=None)
    return None if prefix is None else _forms[prefix]
