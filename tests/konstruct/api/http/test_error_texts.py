"""What a program reads after a mistake: what was sent, what is wrong, and what to send."""

from typing import Any

import pytest

from tests.konstruct.conftest import MESSAGES, Program

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
    ("GET", f"{MESSAGES}?since=yesterday", None, {}, 400, ("such as 2026-03-14T09:30:00Z",)),
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
