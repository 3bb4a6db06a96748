"""Fixtures of the API's tests."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from konstruct.interfaces.openai import views
from tests.konstruct.api.said import Said, said_something
from tests.konstruct.conftest import Program


@pytest.fixture(autouse=True)
def _no_wait_for_completions(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker runs beside these tests, and a completion waits for its reply."""
    monkeypatch.setattr(views, "WAIT_SECONDS", 0)


@pytest.fixture(scope="module")
def said(
    module_transaction: Callable[[], AbstractContextManager[None]], standing_program: Program
) -> Said:
    """The records of a tenant with conversations, made once for all tests of a module."""
    with module_transaction():
        return said_something(standing_program)
