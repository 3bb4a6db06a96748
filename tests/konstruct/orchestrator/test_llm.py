"""Language models behind HTTP, against a real server on loopback."""

import httpx
import pytest

from konstruct.orchestrator import llm
from konstruct.orchestrator.exceptions import LLMRefused, LLMReplyInvalid, LLMUnavailable
from konstruct.orchestrator.llm import BuiltInResponder, HttpLanguageModel, language_model
from tests.llm_server import Answer, LLMServer

MESSAGES = [{"role": "user", "content": "Hi"}]


@pytest.fixture
def pauses() -> list[float]:
    return []


def ask(server: LLMServer, pauses: list[float], **options: object) -> str:
    model = HttpLanguageModel(server.url, sleep=pauses.append, **{"api": "pool", **options})
    return model.complete(MESSAGES, model="", tier="fast")


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
def test_what_may_pass_is_tried_again_with_growing_pauses(
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
    with pytest.raises(LLMUnavailable, match="answered 429: 'busy'") as caught:
        ask(llm_server, pauses)
    assert caught.value.retry_after == 120.0
    assert (pauses, len(llm_server.requests)) == ([], 1)


def test_an_error_that_stays_is_reported_with_what_the_server_said(
    llm_server: LLMServer, pauses: list[float]
) -> None:
    llm_server.answers = [Answer("out of memory", 500)] * llm.TRIES
    with pytest.raises(LLMUnavailable, match="answered 500: 'out of memory'"):
        ask(llm_server, pauses)
    assert len(llm_server.requests) == llm.TRIES


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 422])
def test_a_refusal_is_not_tried_again(
    llm_server: LLMServer, pauses: list[float], status: int
) -> None:
    llm_server.answers = [Answer("no such model", status)]
    with pytest.raises(LLMRefused, match=rf"answered {status}: 'no such model'.*LLM_API_KEY"):
        ask(llm_server, pauses, key="secret")
    assert len(llm_server.requests) == 1


def test_an_error_never_shows_the_key(llm_server: LLMServer, pauses: list[float]) -> None:
    llm_server.answers = [Answer("no", 401)]
    with pytest.raises(LLMRefused) as caught:
        ask(llm_server, pauses, key="very-secret")
    assert "very-secret" not in str(caught.value)


@pytest.mark.parametrize("body", ["<html>oops</html>", "", "[" * 100_000])
def test_what_is_not_json_is_reported(
    llm_server: LLMServer, pauses: list[float], body: str
) -> None:
    llm_server.answers = [Answer(body)]
    with pytest.raises(LLMReplyInvalid, match="what is not JSON"):
        ask(llm_server, pauses)


def test_an_endless_answer_is_cut_off(
    llm_server: LLMServer, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llm, "MAX_REPLY_BYTES", 1000)
    llm_server.answers = [Answer({"content": "x" * 5000})]
    with pytest.raises(LLMReplyInvalid, match="more than 1000 bytes"):
        ask(llm_server, pauses)


def test_a_silent_server_is_given_up_after_the_time_out(
    llm_server: LLMServer, pauses: list[float]
) -> None:
    llm_server.answers = [Answer({"content": "late"}, wait=True)]
    with pytest.raises(LLMUnavailable, match=r"did not answer within 0\.2 seconds"):
        ask(llm_server, pauses, timeout=0.2)
    assert len(llm_server.requests) == 1


def test_a_server_that_drips_is_given_up_after_the_time_out(
    llm_server: LLMServer, pauses: list[float]
) -> None:
    llm_server.answers = [Answer({"content": "x" * 100}, drip=0.05)]
    with pytest.raises(LLMUnavailable, match=r"did not answer within 0\.2 seconds"):
        ask(llm_server, pauses, timeout=0.2)


def test_a_server_that_is_not_there_is_reported(pauses: list[float]) -> None:
    with LLMServer() as gone:
        pass
    with pytest.raises(LLMUnavailable, match=r"cannot be reached.*Is LLM_POOL_URL right"):
        ask(gone, pauses)
    assert len(pauses) == llm.TRIES - 1


@pytest.mark.parametrize("url", ["not a url", "http://[::bad", "ftp://llm"])
def test_a_url_that_is_none_is_reported(url: str) -> None:
    model = HttpLanguageModel(url, sleep=lambda seconds: None)
    with pytest.raises((LLMRefused, LLMUnavailable), match="LLM_POOL_URL"):
        model.complete(MESSAGES, model="", tier="fast")


def test_the_settings_choose_the_language_model(settings: object) -> None:
    settings.LLM_POOL_URL = ""
    assert language_model() == BuiltInResponder()
    settings.LLM_POOL_URL, settings.LLM_API, settings.LLM_API_KEY = "http://llm", "pool", "key"
    settings.LLM_MODEL, settings.LLM_TIMEOUT = "m", 9
    assert language_model() == HttpLanguageModel("http://llm", "pool", "key", "m", 9)


def test_one_process_has_one_pool_of_connections() -> None:
    assert llm._client() is llm._client()
    assert isinstance(llm._client(), httpx.Client)
