"""Language models behind HTTP, against a real server on loopback."""

import json
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from traceback import format_exception
from typing import Any
from uuid import UUID

import pytest

from konstruct.llm import client, completions
from konstruct.llm.completions import FILTERED_REPLY, Completion, CompletionRequest
from konstruct.llm.responder import BuiltInResponder
from tenants.context import tenant_scope
from tenants.exceptions import detail_of
from tenants.limits.fair_shares import FairShares
from tests.servers.llm import Answer, LLMServer, streamed

EVENT_STREAM = "text/event-stream"
MESSAGES = [{"role": "user", "content": "Hi"}]
REQUEST = CompletionRequest(MESSAGES, model="", tier="fast")


@pytest.fixture
def pauses() -> list[float]:
    return []


def ask(server: LLMServer, pauses: list[float], **options: object) -> str:
    model = client.HttpLanguageModel(server.url, sleep=pauses.append, **{"api": "pool", **options})
    return model.complete(REQUEST).text


def test_a_pool_is_asked_at_complete(llm_server: LLMServer, pauses: list[float]) -> None:
    llm_server.answers = [Answer({"content": "Hello"})]
    assert ask(llm_server, pauses) == "Hello"
    assert [(request.path, request.body) for request in llm_server.requests] == [
        ("/complete", {"model_tier": "fast", "messages": MESSAGES})
    ]


def test_an_openai_server_is_asked_with_key_and_model(
    llm_server: LLMServer, pauses: list[float]
) -> None:
    llm_server.answers = [Answer({"choices": [{"message": {"content": "Hello"}}]})]
    answer = ask(llm_server, pauses, api="openai", key="secret", default_model="small")
    request = llm_server.requests[0]
    assert answer == "Hello"
    assert request.path == "/v1/chat/completions"
    assert request.headers["Authorization"] == "Bearer secret"
    assert request.body == {"model": "small", "messages": MESSAGES}


def test_auto_finds_out_once_which_api_a_server_speaks(
    llm_server: LLMServer, pauses: list[float]
) -> None:
    llm_server.paths = {"/v1/chat/completions"}
    llm_server.answers = [Answer({"content": "one"}), Answer({"content": "two"})]
    assert [ask(llm_server, pauses, api="auto") for _ in range(2)] == ["one", "two"]
    assert [request.path for request in llm_server.requests] == [
        "/complete",
        "/v1/chat/completions",
        "/v1/chat/completions",
    ]


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_temporary_errors_are_retried_with_growing_pauses(
    llm_server: LLMServer, pauses: list[float], status: int
) -> None:
    llm_server.answers = [Answer("busy", status), Answer("busy", status), Answer({"text": "Hi"})]
    assert ask(llm_server, pauses) == "Hi"
    assert [0.4 <= pauses[0] <= 0.6, 0.8 <= pauses[1] <= 1.2, len(pauses)] == [True, True, 2]


def test_retry_after_is_waited_for(llm_server: LLMServer, pauses: list[float]) -> None:
    llm_server.answers = [Answer("busy", 429, {"Retry-After": "3"}), Answer({"text": "Hi"})]
    assert ask(llm_server, pauses) == "Hi"
    assert pauses == [3.0]


def test_a_long_retry_after_is_left_to_the_outbox(
    llm_server: LLMServer, pauses: list[float]
) -> None:
    llm_server.answers = [Answer("busy", 429, {"Retry-After": "120"})]
    with pytest.raises(completions.LLMUnavailable, match="not available now") as caught:
        ask(llm_server, pauses)
    assert "answered 429: 'busy'" in caught.value.detail
    assert caught.value.retry_after == 120.0
    assert (pauses, len(llm_server.requests)) == ([], 1)


def test_permanent_error_is_reported_with_the_text_of_the_server(
    llm_server: LLMServer, pauses: list[float]
) -> None:
    llm_server.answers = [Answer("out of memory", 500)] * client.MAX_ATTEMPTS
    with pytest.raises(completions.LLMUnavailable) as caught:
        ask(llm_server, pauses)
    assert str(caught.value) == "The language model is not available now (HTTP 500)."
    assert caught.value.detail == f"{llm_server.url}/complete answered 500: 'out of memory'."
    assert len(llm_server.requests) == client.MAX_ATTEMPTS


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 422])
def test_refusal_is_not_retried(llm_server: LLMServer, pauses: list[float], status: int) -> None:
    remedy = "its key" if status in (401, 403) else "the agent's model"
    llm_server.answers = [Answer("no such model", status)]
    with pytest.raises(
        completions.LLMRefused, match=rf"\(HTTP {status}\)\. Check {remedy}\."
    ) as caught:
        ask(llm_server, pauses, key="secret")
    assert f"answered {status}: 'no such model'" in caught.value.detail
    assert "no such model" not in str(caught.value)
    assert len(llm_server.requests) == 1


def test_an_error_never_shows_the_key(llm_server: LLMServer, pauses: list[float]) -> None:
    llm_server.answers = [Answer("no", 401)]
    with pytest.raises(completions.LLMRefused) as caught:
        ask(llm_server, pauses, key="very-secret")
    assert "very-secret" not in str(caught.value) + caught.value.detail
    assert "very-secret" not in repr(
        client.HttpLanguageModel("http://u:very-secret@llm", key="very-secret")
    )


@pytest.mark.parametrize("answer", [Answer("no", 400), Answer("no", 500), Answer("no"), None])
def test_user_and_password_of_the_address_are_sent_and_never_shown(
    llm_server: LLMServer,
    pauses: list[float],
    answer: Answer | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = llm_server.url.replace("://", "://user:p%40ss-word@")
    if answer is None:
        url = url.replace(str(llm_server._server.server_port), "1")
    else:
        llm_server.default = answer
    model = client.HttpLanguageModel(url, sleep=pauses.append)
    with pytest.raises(completions.LLMError) as caught:
        model.complete(REQUEST)
    text = f"{caught.value} {caught.value.detail} {caught.value!r} {caplog.text}"
    assert "ss-word" not in text
    for request in llm_server.requests:
        assert request.headers["Authorization"] == "Basic " + b64encode(b"user:p@ss-word").decode()


@pytest.mark.parametrize("body", ["<html>oops</html>", "", "[" * 100_000])
def test_response_without_json_is_reported(
    llm_server: LLMServer, pauses: list[float], body: str
) -> None:
    llm_server.answers = [Answer(body)] * client.MAX_ATTEMPTS
    with pytest.raises(completions.LLMReplyInvalid, match="it is not JSON"):
        ask(llm_server, pauses)
    assert llm_server.answers == []


@pytest.mark.parametrize("body", ["{", b"\xff{}", {"choices": []}, {}])
def test_malformed_answer_is_retried(
    llm_server: LLMServer, pauses: list[float], body: object
) -> None:
    llm_server.answers = [Answer(body), Answer({"text": "Hi"})]
    assert ask(llm_server, pauses) == "Hi"
    assert len(pauses) == 1


REFUSED = {"message": {"content": None, "refusal": "I cannot help."}, "finish_reason": "stop"}
FILTERED = {"message": {"content": None}, "finish_reason": "content_filter"}


@pytest.mark.parametrize(
    ("choice", "text", "reason"),
    [
        (REFUSED, "I cannot help.", "stop"),
        ({**REFUSED, "finish_reason": "content_filter"}, "I cannot help.", "content_filter"),
        (FILTERED, FILTERED_REPLY, "content_filter"),
    ],
)
def test_a_refusal_of_the_model_is_an_answer(
    llm_server: LLMServer, choice: dict[str, Any], text: str, reason: str
) -> None:
    delta = {"index": 0, "delta": choice["message"], "finish_reason": choice["finish_reason"]}
    events = (f"data: {json.dumps({'choices': [delta]})}\n\n", "data: [DONE]\n\n")
    stream = Answer("", headers={"Content-Type": "text/event-stream"}, events=events)
    llm_server.answers = [Answer({"choices": [choice]}), stream]
    model = client.HttpLanguageModel(llm_server.url, api="openai")
    completion = model.complete(REQUEST)
    pieces: list[str] = []
    assert (
        completion
        == model.complete(REQUEST, pieces.append)
        == Completion(text, finish_reason=reason)
    )
    assert len(llm_server.requests) == 2


SECRET = "my wife's diagnosis is Zöliakie 4711"


@pytest.mark.parametrize(
    "answer",
    [
        Answer({"error": {"message": f"invalid prompt: {SECRET}"}}, 400),
        Answer(f"<p>{SECRET}</p>", 500),
        Answer(f"<p>{SECRET}</p>"),
        Answer({"echo": SECRET}),
        Answer(f'data: {{"error": "{SECRET}"}}\n\n', headers={"Content-Type": EVENT_STREAM}),
        Answer(f"data: {SECRET}\n\n", headers={"Content-Type": EVENT_STREAM}),
    ],
)
def test_an_error_never_repeats_the_words_of_the_prompt(
    llm_server: LLMServer, pauses: list[float], answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    llm_server.default = answer
    model = client.HttpLanguageModel(llm_server.url, api="openai", sleep=pauses.append)
    request = CompletionRequest([{"role": "user", "content": SECRET}], model="", tier="fast")
    with caplog.at_level("DEBUG"), pytest.raises(completions.LLMError) as caught:
        model.complete(request, lambda piece: None)
    caplog.handler.flush()
    lines = "".join(r.getMessage() for r in caplog.records if r.levelname != "DEBUG")
    text = f"{detail_of(caught.value)} {''.join(format_exception(caught.value))} {lines}"
    for word in ("diagnosis", "wife", "liakie", "4711"):
        assert word not in text


def test_a_compressed_answer_is_not_unpacked(llm_server: LLMServer, pauses: list[float]) -> None:
    llm_server.default = Answer({"content": "Hi"}, headers={"Content-Encoding": "gzip"})
    assert ask(llm_server, pauses) == "Hi"
    assert llm_server.requests[0].headers["Accept-Encoding"] == "identity"


def test_tries_share_a_connection(llm_server: LLMServer, pauses: list[float]) -> None:
    assert [ask(llm_server, pauses) for _ in range(3)] == ["Noted."] * 3
    assert len({request.port for request in llm_server.requests}) == 1


def test_a_cancelled_answer_ends_its_request(llm_server: LLMServer) -> None:
    """The callback raises, as in a task that exceeds its time limit."""
    llm_server.default = streamed("No", "ted.", wait=True)

    class TimeLimit(Exception):
        pass

    def stop(piece: str) -> None:
        raise TimeLimit

    with pytest.raises(TimeLimit):
        client.HttpLanguageModel(llm_server.url, api="openai").complete(REQUEST, stop)
    assert len(llm_server.requests) == 1


def test_too_long_answer_is_an_error_and_the_longest_is_accepted(
    llm_server: LLMServer, pauses: list[float]
) -> None:
    longest = "😀" * 65_536
    llm_server.answers = [Answer({"content": f"{longest}😀"}), Answer({"content": longest})]
    with pytest.raises(completions.LLMReplyInvalid, match="too long") as caught:
        ask(llm_server, pauses)
    assert "65,537 characters" in caught.value.detail
    assert ask(llm_server, pauses) == longest


@pytest.mark.parametrize("depth", [100, 490, 900])
def test_an_answer_that_is_nested_too_deeply_is_reported(
    llm_server: LLMServer, pauses: list[float], depth: int
) -> None:
    llm_server.default = Answer("[" * depth + "]" * depth)
    with pytest.raises(completions.LLMReplyInvalid):
        ask(llm_server, pauses)


@pytest.mark.parametrize(("timeout", "retry_seconds"), [(0.2, 30), (60, 0.2)])
def test_a_pause_beyond_the_time_for_attempts_is_left_to_the_outbox(
    llm_server: LLMServer,
    pauses: list[float],
    monkeypatch: pytest.MonkeyPatch,
    timeout: float,
    retry_seconds: float,
) -> None:
    monkeypatch.setattr(client, "MAX_RETRY_SECONDS", retry_seconds)
    llm_server.default = Answer("busy", 503)
    with pytest.raises(completions.LLMUnavailable, match="HTTP 503"):
        ask(llm_server, pauses, timeout=timeout)
    assert (pauses, len(llm_server.requests)) == ([], 1)


def test_a_server_that_is_not_there_is_reported(pauses: list[float]) -> None:
    with LLMServer() as closed:
        pass
    with pytest.raises(completions.LLMUnavailable, match="cannot be reached") as caught:
        ask(closed, pauses)
    assert "Is LLM_POOL_URL right" in caught.value.detail
    assert len(pauses) == client.MAX_ATTEMPTS - 1


@pytest.mark.parametrize("url", ["not a url", "ftp://llm"])
def test_invalid_url_is_reported(url: str) -> None:
    model = client.HttpLanguageModel(url, sleep=lambda seconds: None)
    with pytest.raises((completions.LLMRefused, completions.LLMUnavailable)) as caught:
        model.complete(REQUEST)
    assert "LLM_POOL_URL" in caught.value.detail


def test_the_settings_choose_the_language_model(settings: object) -> None:
    settings.LLM_POOL_URL = ""
    assert client.language_model() == BuiltInResponder()
    settings.LLM_POOL_URL, settings.LLM_API, settings.LLM_API_KEY = "http://llm", "pool", "key"
    settings.LLM_MODEL, settings.LLM_TIMEOUT = "m", 9
    assert client.language_model() == client.HttpLanguageModel("http://llm", "pool", "key", "m", 9)


def test_a_tenant_does_not_take_all_that_the_server_may_be_asked_at_once(
    llm_server: LLMServer, settings: Any
) -> None:
    """Three requests of tenant A wait for a running one; tenant B's runs at once."""
    settings.LLM_POOL_URL, settings.LLM_API = llm_server.url, "pool"
    settings.LLM_MAX_CONCURRENT = 3
    llm_server.default = Answer({"content": "Noted."}, wait=True)

    def ask_for(tenant_id: UUID) -> str:
        with tenant_scope(tenant_id):
            return client.language_model().complete(REQUEST).text

    a, b = UUID(int=1), UUID(int=2)
    with ThreadPoolExecutor(5) as threads:
        answers = [threads.submit(ask_for, a) for _ in range(4)]
        llm_server.wait_for_requests(1)
        answers.append(threads.submit(ask_for, b))
        llm_server.wait_for_requests(2)
        shares = client.language_model().shares  # type: ignore[union-attr]
        assert shares is not None
        assert shares.tenants_at_limit() == {a, b}
        llm_server.release()
        assert [answer.result() for answer in answers] == ["Noted."] * 5
    assert shares.in_flight() == 0


def test_call_without_a_free_slot_before_the_deadline_is_not_sent(
    llm_server: LLMServer, pauses: list[float]
) -> None:
    shares = FairShares(1)
    assert shares.enter(UUID(int=1))
    with pytest.raises(
        completions.LLMTimeout, match=r"did not answer within 0\.05 seconds"
    ) as caught:
        ask(llm_server, pauses, shares=shares, timeout=0.049999)
    assert "LLM_MAX_CONCURRENT" in caught.value.detail
    assert llm_server.requests == []
    assert shares.in_flight() == 1
