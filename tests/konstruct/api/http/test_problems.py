"""Every error below /api/ is a problem document, from any source."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from konstruct.api.http import problems
from konstruct.middleware import RequestIdMiddleware
from konstruct.orchestrator import replies
from tenants.traces import log_ids
from tests.konstruct.conftest import MESSAGES, Program


def problem(response: Any, status: int, kind: str) -> dict[str, Any]:
    """Return the document after checks of the common fields."""
    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert document["type"] == f"urn:konstruct:problem:{kind}"
    assert document["status"] == status
    assert document["request_id"] == response.headers["X-Request-ID"]
    assert document["title"]
    assert document["detail"]
    return document


@pytest.mark.parametrize("debug", [False, True])
def test_an_unknown_path(program_a: Program, settings: Any, debug: bool) -> None:
    settings.DEBUG = debug
    document = problem(program_a.get("/api/v1/nonsense/"), 404, "not-found")
    assert document["instance"] == "/api/v1/nonsense/"


@pytest.mark.parametrize("debug", [False, True])
def test_internal_error(
    program_a: Program, settings: Any, debug: bool, monkeypatch: Any, caplog: Any
) -> None:
    def explode(*arguments: Any) -> None:
        raise RuntimeError("secret internals")

    settings.DEBUG = debug
    monkeypatch.setattr(replies, "sent_messages", explode)
    response = program_a.get(MESSAGES)
    document = problem(response, 500, "internal-error")
    assert "secret" not in str(document)
    assert f"GET {MESSAGES} failed" in caplog.text
    assert "secret internals" in caplog.text


@pytest.mark.parametrize(
    ("host", "status"), [("nobody.localhost", 404), ("evil.example", 400), ("bad host", 400)]
)
def test_a_wrong_host_is_named(program_a: Program, host: str, status: int) -> None:
    program_a.host = host
    response = program_a.send()
    document = problem(response, status, "not-found" if status == 404 else "bad-request")
    (error,) = document["errors"]
    assert (error["field"], error["value"]) == ("Host", host)


def test_missing_final_slash_keeps_method_and_body(program_a: Program) -> None:
    response = program_a.post(MESSAGES.rstrip("/"), {"content": "Hello"})
    assert (response.status_code, response.headers["Location"]) == (308, MESSAGES)


def test_request_id_of_the_caller_is_returned(program_a: Program) -> None:
    response = program_a.get(MESSAGES, headers={"X-Request-ID": "job-7.try:2"})
    assert response.headers["X-Request-ID"] == "job-7.try:2"


def test_log_lines_of_a_request_have_its_id() -> None:
    seen: list[str] = []

    def answer(request: HttpRequest) -> HttpResponse:
        seen.append(log_ids()["request_id"])
        return HttpResponse()

    request = RequestFactory().get("/", headers={"X-Request-ID": "job-7"})
    assert RequestIdMiddleware(answer)(request).headers["X-Request-ID"] == "job-7"
    assert (seen, problems.current_request_id(), log_ids()) == (["job-7"], "-", {})


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "a\tb", "ü"])
def test_a_request_id_that_could_break_a_log_is_replaced(program_a: Program, given: str) -> None:
    response = program_a.get(MESSAGES, headers={"X-Request-ID": given})
    assert re.fullmatch(r"[0-9a-f-]{36}", response.headers["X-Request-ID"])


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("short", True),
        (7, True),
        (True, True),
        ("x" * 101, False),
        ({"a": 1}, False),
        (["a"], False),
        (None, False),
    ],
)
def test_only_short_plain_values_are_sent_back(value: Any, shown: bool) -> None:
    assert ("value" in problems.FieldError("name", "wrong", value).document()) is shown


def error_of(error_class: type, text: str) -> Exception:
    """Return an error with this text, whatever arguments its constructor has."""
    error: Exception = error_class.__new__(error_class)
    error.args = (text,)
    return error


@pytest.mark.parametrize("error_class", problems.KONSTRUCT_ERRORS)
def test_each_error_has_a_status_and_a_detail(error_class: type) -> None:
    found = problems.problem_of(error_of(error_class, "What was wrong, and what to do."))
    assert (found.status, found.kind) == problems.KONSTRUCT_ERRORS[error_class][:2]
    assert "What was wrong, and what to do." in found.detail


def test_unexpected_status_is_a_problem_document() -> None:
    assert problems.Problem.of_status(418).kind == "bad-request"
    assert problems.Problem.of_status(599).kind == "internal-error"


def said_plainly(request: HttpRequest, problem: problems.Problem) -> HttpResponse:
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
        path: problems.problem_response(RequestFactory().get(path), problems.Problem.of_status(404))
        for path in ("/plain/x", "/api/plain/x", "/api/x", "/elsewhere")
    }
    assert answers["/plain/x"].content == b"404 at /plain/x"
    assert answers["/api/plain/x"].content == b"404 at /api/plain/x"
    assert answers["/api/x"].headers["Content-Type"] == problems.MEDIA_TYPE
    assert answers["/elsewhere"].headers["Content-Type"] == problems.MEDIA_TYPE
    takes = [path for path in answers if problems.accepts_api_keys(path)]
    assert takes == ["/plain/x", "/api/plain/x", "/api/x"]


UNKNOWN = "0a5cb0e1-7d2f-4a43-9d1e-6f6a5a4b3c2d"
FACTS = "/api/v1/facts/"
TEXT: dict[str, Any] = {"agent": "ada", "user_id": "maria"}

# Method, address, body, headers, status, words of the response.
MISTAKES: tuple[tuple[str, str, Any, dict[str, str], int, tuple[str, ...]], ...] = (
    ("POST", MESSAGES, b" " * 2_700_000, {}, 413, ("at most 2,500,000 bytes",)),
    ("GET", f"{MESSAGES}?{'a=1&' * 1_001}", None, {}, 400, ("at most 1,000 parameters",)),
    ("POST", MESSAGES, b"\x1f\x8b", {"Content-Encoding": "gzip"}, 415, ("'gzip'", "without one")),
    ("POST", MESSAGES, {**TEXT, "content": "a\0b"}, {}, 400, ("U+0000 (NUL) at 1",)),
    ("POST", MESSAGES, {**TEXT, "content": "\u200b"}, {}, 400, ("is blank",)),
    ("POST", MESSAGES, {"agent": "ada", "user_id": "le\u200ba", "content": "a"}, {}, 400,
     ("U+200B (ZERO WIDTH SPACE) at 2",)),
    ("POST", MESSAGES, {"agent": "ada", "user_id": "..", "content": "a"}, {}, 400, ("another id",)),
    ("POST", MESSAGES, {"agent": "bo", "user_id": "m", "content": "a"}, {}, 422,
     ("No active agent has the name or id 'bo'", "The agents are: 'ada'.")),
    ("GET", f"{MESSAGES}?since=2026-03-14", None, {}, 400, ("such as 2026-03-14T09:30:00Z",)),
    ("GET", "/api/v1/agents/ada/", None, {}, 404, ("ids are UUIDs and not names",)),
    ("GET", f"{MESSAGES}?since=2026-03-14T09:30:00+02:00", None, {}, 400, ("as %2B",)),
    ("POST", MESSAGES.rstrip("/"), TEXT, {}, 308, (f"send the request to {MESSAGES}",)),
    ("GET", f"{MESSAGES}{UNKNOWN}/", None, {}, 404, (f"no message '{UNKNOWN}'",)),
    ("GET", f"{FACTS}{UNKNOWN}/", None, {}, 404, (UNKNOWN,)),
    ("GET", f"/api/v1/agents/{UNKNOWN}/", None, {}, 404, (f"no agent '{UNKNOWN}'",)),
    ("GET", f"/api/v1/erasures/{UNKNOWN}/", None, {}, 404, (UNKNOWN,)),
    ("GET", MESSAGES, None, {"Authorization": "Bearer ks_no"}, 401, ("tenant's admin",)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("method", "address", "body", "headers", "status", "words"),
    MISTAKES,
    ids=[f"{mistake[4]} {mistake[5][0]}" for mistake in MISTAKES],
)
def test_an_error_names_what_is_wrong_and_what_to_send(
    program_a: Program, method: str, address: str, body: Any, headers: dict[str, str],
    status: int, words: tuple[str, ...],
) -> None:  # fmt: skip
    if method == "POST":
        response = program_a.post(address, body, headers=headers)
    else:
        response = program_a.get(address, headers=headers)
    assert response.status_code == status, response.content
    text = str(response.json())
    for word in words:
        assert word in text
    assert "manage.py" not in text
    assert "settings." not in text
