"""Addresses that accept API keys, and the format of their errors."""

from collections.abc import Iterator

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from konstruct.api.http import problems
from konstruct.api.http.problems import MEDIA_TYPE, Problem


def said_plainly(request: HttpRequest, problem: Problem) -> HttpResponse:
    return HttpResponse(f"{problem.status} at {request.path}", status=problem.status)


@pytest.fixture
def _another_form() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problems, "_error_formats", dict(problems._error_formats))
        problems.register_error_format("/plain/", said_plainly)
        problems.register_error_format("/api/plain/", said_plainly)
        yield


@pytest.mark.usefixtures("_another_form")
def test_the_longest_prefix_decides_the_form() -> None:
    answers = {
        path: problems.problem_response(RequestFactory().get(path), Problem.of_status(404))
        for path in ("/plain/x", "/api/plain/x", "/api/x", "/elsewhere")
    }
    assert answers["/plain/x"].content == b"404 at /plain/x"
    assert answers["/api/plain/x"].content == b"404 at /api/plain/x"
    assert answers["/api/x"].headers["Content-Type"] == MEDIA_TYPE
    assert answers["/elsewhere"].headers["Content-Type"] == MEDIA_TYPE
    takes = [path for path in answers if problems.accepts_api_keys(path)]
    assert takes == ["/plain/x", "/api/plain/x", "/api/x"]
