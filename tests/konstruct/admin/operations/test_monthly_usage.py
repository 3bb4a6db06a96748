"""The operators' page of usage: the last measurement of all tenants, and the CSV of a month."""

import csv
import io
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from konstruct.orchestrator import measuring
from tenants.context import public_scope
from tenants.limits.quotas import Limit, Quota, set_limits
from tenants.models import OperatorEvent, Tenant
from tests.konstruct.conftest import Program

PAGE = "/admin/usage/"


def downloaded(answer: Any) -> list[dict[str, str]]:
    text = b"".join(answer.streaming_content).decode()
    return list(csv.DictReader(io.StringIO(text)))


def test_operators_download_a_month_of_all_tenants(
    operator: Client, program_a: Program, program_b: Program
) -> None:
    program_a.send("One")
    with public_scope():
        Tenant.objects.filter(pk=program_b.tenant.id).update(state=Tenant.State.SUSPENDED)
        Tenant.objects.create(slug="has-no-schema-yet", name="New")
    month = f"{timezone.now():%Y-%m}"
    answer = operator.get(PAGE, {"csv": "1", "month": month})
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"] == f'attachment; filename="usage-{month}.csv"'
    rows = downloaded(answer)
    found = {row["tenant"]: (row["month"], row["messages"]) for row in rows}
    assert found == {program_a.tenant.slug: (month, "1"), program_b.tenant.slug: (month, "0")}
    event = OperatorEvent.objects.latest("pk")
    assert (event.action, event.subject, event.detail["asked"]) == (
        "view",
        "usage",
        {"month": month},
    )
    (old, _) = downloaded(operator.get(PAGE, {"csv": "1", "month": "2020-02"}))
    assert (old["month"], old["messages"], old["storage_bytes"]) == ("2020-02", "0", "")


@pytest.mark.parametrize(
    "month", ["", "9999-12", "0000-01", "2026-13", "2026-1", "２０２６-11", "x" * 5000]
)
def test_invalid_month_shows_the_current_month(
    operator: Client, program_a: Program, month: str
) -> None:
    rows = downloaded(operator.get(PAGE, {"csv": "1", "month": month}))
    assert {row["month"] for row in rows} == {f"{timezone.now():%Y-%m}"}


def test_the_last_measurement_is_shown_without_entering_tenants(
    operator: Client,
    program_a: Program,
    program_b: Program,
    django_assert_max_num_queries: Callable[..., Any],
) -> None:
    set_limits(program_a.tenant.id, {Quota.MESSAGES: Limit(Decimal(1), Decimal(2))})
    program_a.send("One")
    with public_scope():
        measuring.measure(Tenant.objects.get(pk=program_a.tenant.id))
    with django_assert_max_num_queries(8):
        page = operator.get(PAGE)
    rows = {row["tenant"].slug: row for row in page.context["rows"]}
    of_a = rows[program_a.tenant.slug]
    assert (of_a["month"]["messages"], of_a["reached"]) == ("1", "Messages in a month: soft limit")
    assert "measured_at" not in rows[program_b.tenant.slug]
    (card,) = [
        card
        for card in operator.get("/admin/").context["attention"]["cards"]
        if "quota=reached" in card.link
    ]
    assert [line[:2] for line in card.lines] == [
        (program_a.tenant.slug, "Messages in a month: soft limit")
    ]


def test_page_of_usage_requires_a_permission(db: None) -> None:
    client = Client(headers={"Host": "localhost"})
    client.force_login(User.objects.create_user("otto", is_staff=True))
    assert client.get(PAGE).status_code == 403
