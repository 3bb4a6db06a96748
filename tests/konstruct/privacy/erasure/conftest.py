"""Fixtures of erasures."""

from collections.abc import Iterator
from typing import Any

import pytest

from konstruct.privacy.erasure import person
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests import database


@pytest.fixture
def owner(tenant_a: Tenant) -> Iterator[None]:
    """Run the test as the owner in tenant A."""
    with database.as_owner(), tenant_scope(tenant_a.id):
        yield


@pytest.fixture
def files_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the rewrite of tables and the wait for transactions (see test_erasure_at_scale.py)."""

    def rewritten(table: str, stored: dict[str, Any], **_: Any) -> None:
        stored["rewritten"].append(table)

    monkeypatch.setattr(person, "_wait_for_older_transactions", lambda: None)
    monkeypatch.setattr(person, "_purge_table", rewritten)
