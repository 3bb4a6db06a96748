"""Requests of the Python client: retries, headers, and the reading of answers."""

import asyncio
import importlib
import inspect
import json
import sys
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from konstruct_client import (
    AsyncClient,
    Client,
    ConnectionFailed,
    KonstructError,
    __version__,
    errors,
)

URL, KEY = "http://konstruct.test/", "ks_test"
FACT = {"memory_id": "f1", "content": "Tea."}
Answer = httpx.Response | Exception


class Server:
    """Answers requests one by one, and records them."""

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.requests = list(answers), list[httpx.Request]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        # A new response, because a parametrized test returns it twice.
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


Do = Callable[..., Any]


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the pauses of the client before retries. It does not really wait."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("time.sleep", waits.append)
    monkeypatch.setattr("asyncio.sleep", sleep)
    return waits


@pytest.fixture(params=["at once", "awaited"])
def do(request: pytest.FixtureRequest) -> Do:
    """Call a function with a sync or async client. Return the result."""

    def at_once(server: Server, use: Callable[[Client], Any], **options: Any) -> Any:
        with httpx.Client(transport=httpx.MockTransport(server)) as http:
            found = use(Client(URL, KEY, http=http, **options))
            return [*found] if hasattr(found, "__iter__") and not isinstance(found, dict) else found

    def awaited(server: Server, use: Callable[[AsyncClient], Any], **options: Any) -> Any:
        async def run() -> Any:
            async with httpx.AsyncClient(transport=httpx.MockTransport(server)) as http:
                found = use(AsyncClient(URL, KEY, http=http, **options))
                if hasattr(found, "__aiter__"):
                    return [row async for row in found]
                return await found if inspect.isawaitable(found) else found

        return asyncio.run(run())

    return at_once if request.param == "at once" else awaited


def problem(status: int, kind: str, **headers: str) -> httpx.Response:
    document = {"type": f"urn:konstruct:problem:{kind}", "status": status, "detail": "No."}
    return httpx.Response(status, json=document, headers=headers)


def keep(konstruct: Any) -> Any:
    return konstruct.facts.create("Tea.", user_id="maria")


def test_request_contains_the_user_and_the_question(do: Do) -> None:
    server = Server(httpx.Response(201, json=FACT))
    assert do(server, keep) == FACT
    (request,) = server.requests
    assert (request.method, str(request.url)) == ("POST", "http://konstruct.test/api/v1/facts/")
    assert request.headers["Authorization"] == "Bearer ks_test"
    assert request.headers["User-Agent"].startswith(f"konstruct-client/{__version__} python/3.")
    assert json.loads(request.content) == {"content": "Tea.", "user_id": "maria"}


def test_retry_waits_for_retry_after_and_repeats_the_same_request(
    do: Do, slept: list[float]
) -> None:
    server = Server(
        problem(429, "too-many-requests", **{"Retry-After": "3"}),
        problem(409, "idempotency-key-in-use", **{"Retry-After": "1"}),
        httpx.Response(502, text="<h1>Bad gateway</h1>"),
        httpx.RemoteProtocolError("the server is gone"),
        httpx.Response(201, json=FACT),
    )
    assert do(server, keep, retries=4) == FACT
    assert slept[:2] == [3, 1]
    assert (1 <= slept[2] <= 2, 2 <= slept[3] <= 4) == (True, True)
    assert len({request.headers["Idempotency-Key"] for request in server.requests}) == 1
    assert len({request.content for request in server.requests}) == 1


def test_unsafe_requests_are_not_retried(do: Do, slept: list[float]) -> None:
    for answer in (problem(503, "unavailable"), httpx.ReadTimeout("too late")):
        server = Server(answer)
        with pytest.raises(KonstructError):
            do(server, lambda konstruct: konstruct.extractions.retry("e"))
        assert len(server.requests) == 1
    refused = Server(httpx.ConnectError("nobody listens"), httpx.Response(202, json={"id": "e"}))
    assert do(refused, lambda konstruct: konstruct.extractions.retry("e")) == {"id": "e"}


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (problem(409, "duplicate-fact"), errors.DuplicateFact, "409: No."),
        (problem(422, "of-tomorrow"), errors.Unprocessable, "422: No."),
        (problem(418, "of-tomorrow"), errors.Problem, "418: No."),
        (httpx.Response(502, text="<h1>"), errors.ServerError, "502: Bad Gateway: <h1>"),
        (httpx.Response(404, json=["odd"]), errors.NotFound, '404: Not Found: ["odd"]'),
    ],
)
def test_a_problem_is_raised_as_its_type(
    do: Do, answer: httpx.Response, kind: type[errors.Problem], text: str
) -> None:
    with pytest.raises(errors.Problem) as raised:
        do(Server(answer), keep, retries=0)
    assert (type(raised.value), str(raised.value)) == (kind, text)


def test_an_error_names_its_fields() -> None:
    wrong = [{"field": "content", "detail": "May not be blank."}]
    document = {"type": "urn:konstruct:problem:invalid-fields", "status": 400, "errors": wrong}
    document |= {"detail": "Invalid: content.", "request_id": "r-1"}
    server = Server(httpx.Response(400, json=document))
    with (
        httpx.Client(transport=httpx.MockTransport(server)) as http,
        pytest.raises(errors.InvalidFields, match=r"Invalid: content\. content: May") as raised,
    ):
        Client(URL, KEY, http=http).facts.create(" ")
    assert (raised.value.errors, raised.value.request_id) == (wrong, "r-1")


def test_a_list_is_followed_at_the_address_that_the_key_is_for(do: Do) -> None:
    elsewhere = "http://elsewhere.example/api/v1/facts/?cursor=c2&limit=1"
    server = Server(
        httpx.Response(200, json={"next": elsewhere, "previous": None, "results": [{"n": 1}]}),
        httpx.Response(200, json={"next": None, "previous": "…", "results": [{"n": 2}]}),
    )
    found = do(
        server, lambda konstruct: konstruct.facts.list(filters={"topic": {"in": ["a"]}}, limit=1)
    )
    assert found == [{"n": 1}, {"n": 2}]
    first, second = (request.url for request in server.requests)
    assert first.params["filters"] == second.params["filters"] == '{"topic": {"in": ["a"]}}'
    assert (second.host, second.params["cursor"]) == ("konstruct.test", "c2")


def events(*contents: tuple[str, Any]) -> httpx.Response:
    text = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in contents)
    return httpx.Response(200, text=": waiting\n\n" + text)


ACCEPTED = ("accepted", {"id": "m1", "reply": None})
ANSWERED = ("message", {"id": "m1", "reply": {"content": "Tea it is."}})


def read(do: Do, server: Server) -> tuple[list[str], Any]:
    streams: list[Any] = []

    def ask(konstruct: Any) -> Any:
        streams.append(konstruct.messages.stream("Tea?", agent="Ada", user_id="maria"))
        return streams[0]

    return do(server, ask), streams[0]


def test_a_reply_is_read_piece_by_piece(do: Do, slept: list[float]) -> None:
    contents = [ACCEPTED, ("text", {"text": "Tea "}), ("text", {"text": "it is."}), ANSWERED]
    server = Server(problem(503, "unavailable"), events(*contents))
    pieces, stream = read(do, server)
    assert pieces == ["Tea ", "it is."]
    assert (stream.accepted["id"], stream.message["reply"]["content"]) == ("m1", "Tea it is.")
    assert {request.headers["Accept"] for request in server.requests} == {"text/event-stream"}
    assert len({request.headers["Idempotency-Key"] for request in server.requests}) == 1
    assert read(do, Server(events(ACCEPTED, ANSWERED)))[0] == ["Tea it is."]


def test_a_stream_that_breaks_off_is_an_error(do: Do) -> None:
    interruption = {
        "type": "urn:konstruct:problem:reply-interrupted",
        "status": 503,
        "detail": "Broken.",
    }
    with pytest.raises(errors.ReplyInterrupted, match=r"Broken\."):
        read(do, Server(events(ACCEPTED, ("text", {"text": "T"}), ("error", interruption))))
    with pytest.raises(ConnectionFailed, match="broke off; ask for message m1"):
        read(do, Server(events(ACCEPTED, ("text", {"text": "T"}))))
    with pytest.raises(errors.UnknownAgent):
        read(do, Server(problem(422, "unknown-agent")))


def test_address_and_key_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KONSTRUCT_API_KEY", raising=False)
    monkeypatch.setenv("KONSTRUCT_URL", "http://localhost:8000")
    with pytest.raises(KonstructError, match="set KONSTRUCT_API_KEY"):
        Client()
    monkeypatch.setenv("KONSTRUCT_API_KEY", "ks_1")
    with Client() as konstruct:
        assert konstruct.messages._sender.options.url == "http://localhost:8000"
    # As in files and in descriptions of the API.
    options = Client("http://localhost:8000/api/v1/", "ks_1\n").messages._sender.options
    assert (options.url, options.key) == ("http://localhost:8000", "ks_1")
    with pytest.raises(KonstructError, match="url='localhost:8000' is none: begin it with http://"):
        Client("localhost:8000")
    with pytest.raises(KonstructError, match="the key has characters that no key has") as refused:
        Client(key="ks_secret\nks_two")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("adapter", "needs", "name"),
    [
        ("adk", "google.adk", "adk"),
        ("agent_framework", "agent_framework", "agent-framework"),
        ("langchain", "langchain_core", "langchain"),
        ("langgraph", "langgraph.store", "langgraph"),
        ("openai_agents", "agents", "openai-agents"),
    ],
)
def test_a_missing_extra_is_named(
    adapter: str, needs: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [*sys.modules]:
        if module.startswith((f"konstruct_client.{adapter}", f"{needs}.")):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, needs, None)
    with pytest.raises(ImportError, match=rf'pip install "konstruct-client\[{name}\]"'):
        importlib.import_module(f"konstruct_client.{adapter}")
