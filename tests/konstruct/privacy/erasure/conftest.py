"""Fixtures of erasures."""

from typing import Any

import pytest

from konstruct.privacy.erasure import storage


@pytest.fixture
def files_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the rewrite of tables and the wait for transactions (see test_erasure_at_scale.py)."""

    def rewritten(table: str, stored: dict[str, Any], **_: Any) -> None:
        stored["rewritten"].append(table)

    monkeypatch.setattr(storage, "_wait_for_older_transactions", lambda: None)
    monkeypatch.setattr(storage, "_purge_table", rewritten)
