"""Health."""

from typing import Any

import pytest
from django.test import Client

from konstruct.api import health


def get(path: str) -> Any:
    return Client(headers={"Host": "localhost"}).get(path)


def test_live_asks_nothing_of_the_database(db: None, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        response = get("/health/live")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_ready_asks_database_and_cache(db: None) -> None:
    response = get("/health/ready")
    assert response.status_code == 200
    assert response.json() == {"status": "ok", "checks": {"database": "ok", "cache": "ok"}}


def test_not_ready_says_what_is_missing(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ConnectionRefusedError("no cache")

    monkeypatch.setattr(health, "_ask_cache", fail)
    response = get("/health/ready")
    assert response.status_code == 503
    assert response.json() == {
        "status": "unavailable",
        "checks": {"database": "ok", "cache": "unreachable"},
    }
