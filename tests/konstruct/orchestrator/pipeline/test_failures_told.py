"""Errors of a failed reply for callers, tenants' admins and operators."""

import os
from typing import Any
from uuid import UUID

import pytest

from konstruct.logs import RedactingFormatter
from konstruct.orchestrator import pipeline
from konstruct.orchestrator.models import PendingReply
from konstruct.orchestrator.pipeline import respond
from tenants.context import tenant_scope
from tests.konstruct.conftest import MESSAGES, Program
from tests.konstruct.running import run_python
from tests.servers.llm import Answer, LLMServer

MODEL_ERROR = "tenant 7 has used up its quota of gpt-x"
PASSWORD = "pass-word"


@pytest.fixture
def failing(program_a: Program, llm_server: LLMServer, settings: Any) -> LLMServer:
    """A language model with a password, which refuses with its own message."""
    settings.LLM_POOL_URL = llm_server.url.replace("://", f"://user:{PASSWORD}@")
    llm_server.default = Answer(f"{MODEL_ERROR} at {settings.LLM_POOL_URL}", 400)
    return llm_server


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer(MODEL_ERROR, 400), "llm_refused"),
        (Answer(MODEL_ERROR, 404), "llm_refused"),
        (Answer(MODEL_ERROR, 503, {"Retry-After": "60"}), "llm_unavailable"),
        (Answer(MODEL_ERROR), "llm_reply_invalid"),
        (Answer({"nothing": MODEL_ERROR}), "llm_reply_invalid"),
        (None, "llm_unavailable"),
    ],
)
def test_a_caller_gets_a_code_and_a_plain_sentence(
    program_a: Program,
    failing: LLMServer,
    settings: Any,
    caplog: pytest.LogCaptureFixture,
    answer: Answer | None,
    code: str,
) -> None:
    if answer is None:
        settings.LLM_POOL_URL = f"http://user:{PASSWORD}@127.0.0.1:1"
    else:
        failing.default = answer
    of_user = program_a.with_key(user_id="maria")
    sent = of_user.send().json()["id"]
    pipeline.handle(tenant_id=program_a.tenant.id, message_id=UUID(sent))
    for program in (program_a, of_user):
        read_back = program.get(f"{MESSAGES}{sent}/")
        assert read_back.json()["error"]["code"] == code
        assert read_back.json()["error"]["detail"].startswith("The language model")
        for hidden in (MODEL_ERROR, PASSWORD, "127.0.0.1"):
            assert hidden not in read_back.content.decode()
    with tenant_scope(program_a.tenant.id):
        assert MODEL_ERROR not in PendingReply.objects.get().last_error
    # Operators read the message in the log.
    assert answer is None or MODEL_ERROR in caplog.text
    lines = [RedactingFormatter("%(message)s").format(record) for record in caplog.records]
    assert PASSWORD not in "\n".join(lines)


def test_internal_error_is_reported_by_its_type(
    program_a: Program, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: object) -> None:
        raise ValueError("Failing row contains (bob, secret)")

    monkeypatch.setattr(respond, "gather_context", fail)
    sent = program_a.send().json()["id"]
    pipeline.handle(tenant_id=program_a.tenant.id, message_id=UUID(sent))
    error = program_a.get(f"{MESSAGES}{sent}/").json()["error"]
    assert error["code"] == "internal_error"
    assert (
        error["detail"] == "An error inside Konstruct (ValueError). The operators' log says more."
    )
    assert "Failing row contains (bob, secret)" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "password"), [("DATABASE_URL", "pa/ssword"), ("LLM_POOL_URL", "pa#ssword")]
)
def test_invalid_url_is_refused_and_not_shown(name: str, password: str) -> None:
    environment = {**os.environ, "SECRET_KEY": "x" * 50, name: f"redis://user:{password}@host/0"}
    ran = run_python("-c", "import konstruct.settings", env=environment)
    assert ran.returncode != 0
    assert ran.stderr.strip() == (
        f"konstruct: {name} is not a URL. Percent-encode special characters in its user and "
        "password."
    )
