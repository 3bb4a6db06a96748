"""The usage of a month by REST, as JSON and as CSV."""

import csv
import io
from typing import Any

import pytest
from django.utils import timezone

from konstruct.orchestrator.models import CallOutcome
from konstruct.orchestrator.monthly import COLUMNS
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program
from tests.konstruct.metered import metered_call

MONTH = "/api/v1/usage/month/"


def test_a_month_has_the_same_numbers_as_json_and_as_csv(program_a: Program) -> None:
    program_a.send("One")
    with tenant_scope(program_a.tenant.id):
        metered_call(purpose="reply")
        metered_call(CallOutcome.UNKNOWN)
    month = f"{timezone.now():%Y-%m}"
    document = program_a.get(MONTH).json()
    assert tuple(document) == COLUMNS
    expected: dict[str, Any] = {
        "tenant": program_a.tenant.slug,
        "month": month,
        "messages": 1,
        "calls_reply": 1,
        "prompt_tokens": 100,
        "cost": "0.250000",
        "unknown_calls": 1,
        "memories": None,
    }
    assert {name: document[name] for name in expected} == expected
    answer = program_a.get(f"{MONTH}?month={month}", headers={"Accept": "text/csv"})
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    (row,) = csv.DictReader(io.StringIO(answer.text))
    assert row == {name: "" if value is None else str(value) for name, value in document.items()}


def test_an_earlier_month_has_its_own_numbers(program_a: Program) -> None:
    program_a.send("One")
    document = program_a.get(f"{MONTH}?month=2020-02").json()
    assert (document["month"], document["messages"], document["calls_other"]) == ("2020-02", 0, 0)


@pytest.mark.parametrize("month", ["", "9999-12", "0000-01", "2026-13", "2026-1", "2026-11-01"])
def test_invalid_month_is_refused(program_a: Program, month: str) -> None:
    refused = program_a.get(f"{MONTH}?month={month}", headers={"Accept": "text/csv"})
    assert refused.status_code == 400
    assert refused["Content-Type"] == "application/problem+json"
    (error,) = refused.json()["errors"]
    assert error["field"] == "month"
