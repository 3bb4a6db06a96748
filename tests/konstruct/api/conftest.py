"""Fixtures of the API's tests."""

import pytest

from konstruct.interfaces.openai import views


@pytest.fixture(autouse=True)
def _no_wait_for_completions(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker runs beside these tests, and a completion waits for its reply."""
    monkeypatch.setattr(views, "WAIT_SECONDS", 0)
