"""Credentials do not appear in texts for people."""

import logging
import sys

import pytest

from konstruct.logs import RedactingFormatter
from memory.exceptions import EmbeddingModelError
from tenants.exceptions import KonstructError, code_of, detail_of, reason_of
from tenants.redaction import redact


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("at http://user:pass@llm/complete.", "at http://***@llm/complete."),
        ("redis://:pass@cache:6379/0", "redis://***@cache:6379/0"),
        ("postgres://a:b%40c@db/x and http://c:d@e", "postgres://***@db/x and http://***@e"),
        ("http://user:p@ss@host/", "http://***@host/"),
        ("http://llm/complete", "http://llm/complete"),
        ("mail maria@example.org", "mail maria@example.org"),
        ("GET /v1?api_key=abc&b=1", "GET /v1?api_key=***&b=1"),
        ("https://llm/?x=1&token=abc", "https://llm/?x=1&token=***"),
        ("Authorization: Bearer abcdef0123456789", "Authorization: Bearer ***"),
        ("a bearer of news", "a bearer of news"),
        ("token xoxb-12-ab-CD", "token ***"),
        (
            "Incorrect API key provided: sk-proj-0123456789abcdef.",
            "Incorrect API key provided: ***.",
        ),
        (f"ks_{'a' * 32}_{'b' * 12}_{'c' * 64}", "***"),
    ],
)
def test_credentials_are_hidden(text: str, redacted: str) -> None:
    assert redact(text) == redacted
    assert redact(redacted) == redacted


def test_credentials_of_settings_are_hidden_everywhere(settings: object) -> None:
    settings.LLM_POOL_URL = "http://user:12/34@llm"
    settings.LLM_API_KEY = "a-key-of-no-known-form"
    settings.OTEL_EXPORTER_OTLP_HEADERS = "x-api=a-key-of-the-collector"
    settings.SECRET_KEY_FALLBACKS = ["a-former-key-of-django"]
    settings.SLACK_SIGNING_SECRET_FALLBACKS = ["a-former-key-of-slack"]
    assert redact("user:12/34 a-key-of-no-known-form") == "*** ***"
    assert redact("sent x-api=a-key-of-the-collector") == "sent ***"
    assert redact("a-former-key-of-django a-former-key-of-slack") == "*** ***"


def test_a_line_of_the_log_hides_them_in_its_traceback_too() -> None:
    try:
        int("http://user:pass@llm")
    except ValueError:
        record = logging.LogRecord(
            "n", logging.ERROR, "p", 1, "asked %s", ("http://user:pass@llm",), sys.exc_info()
        )
    line = RedactingFormatter("%(message)s").format(record)
    assert "pass" not in line.replace(__file__, "")
    assert line.count("http://***@llm") >= 2


def test_only_known_errors_are_shown_to_callers() -> None:
    error = KonstructError("There is no agent 'bo'.")
    error.detail = "Asked http://user:pass@llm."
    assert (code_of(error), reason_of(error)) == ("failed", "There is no agent 'bo'.")
    assert detail_of(error) == "There is no agent 'bo'. Asked http://***@llm."
    other = ValueError("Failing row contains (maria, http://user:pass@llm)")
    assert code_of(other) == "internal_error"
    assert (
        reason_of(other) == "An error inside Konstruct (ValueError). The operators' log says more."
    )
    assert detail_of(other) == "ValueError: Failing row contains (maria, http://***@llm)"


@pytest.mark.slow
def test_path_of_a_model_is_shown_to_operators_only() -> None:
    error = EmbeddingModelError("the embedding model in /srv/models cannot be loaded")
    assert reason_of(error) == "The embedding model cannot be used. The operators' log says why."
    assert detail_of(error) == str(error)
