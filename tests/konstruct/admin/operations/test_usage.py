"""Usage: a tenant's quotas and days, and those of all tenants for operators."""

import csv
import io
from collections.abc import Callable
from datetime import UTC
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from konstruct.orchestrator import usage
from tenants.audit.models import AccessEvent
from tenants.context import public_scope, tenant_scope
from tenants.limits.quotas import Limit, Quota, set_limits
from tenants.models import OperatorEvent, Tenant
from tests.konstruct.admin.exporting import exported
from tests.konstruct.conftest import Browser, Program
from tests.konstruct.metered import metered_call

DAYS = "/admin/orchestrator/dailyusage/"
OF_TENANTS, TENANTS = "/admin/usage/", "/admin/tenants/tenant/"


def downloaded(answer: Any) -> list[dict[str, str]]:
    text = answer.content.decode()
    return list(csv.DictReader(io.StringIO(text)))


def today() -> str:
    return str(timezone.now().astimezone(UTC).date())


def test_quotas_and_days_are_shown(
    program_a: Program, program_b: Program, browser: Browser, admin: Client
) -> None:
    set_limits(program_a.tenant.id, {Quota.MESSAGES: Limit(Decimal(1), Decimal(4))})
    with tenant_scope(program_a.tenant.id):
        usage.count(messages=3, memories=3)
        metered_call()
    page = admin.get(DAYS)
    (messages,) = [row for row in page.context["quotas"] if row["label"] == Quota.MESSAGES.label]
    assert (messages["used"], messages["share"], messages["level"]) == (3, 75, "soft")
    (row,) = exported(admin, DAYS)
    numbers = ("day", "messages", "calls", "prompt_tokens", "completion_tokens", "cost")
    assert [row[name] for name in numbers] == [today(), "3", "1", "100", "10", "0.250000"]
    assert f"{DAYS}export/?" in page.text
    assert admin.get(f"{DAYS}{today()}/change/").status_code == 200
    with tenant_scope(program_a.tenant.id):
        assert AccessEvent.objects.filter(subject="usage by day").exists()
    assert exported(browser(program_b.tenant), DAYS) == []


def test_operators_download_the_days_of_all_tenants(
    operator: Client, program_a: Program, program_b: Program
) -> None:
    program_a.send("One")
    with tenant_scope(program_b.tenant.id):
        metered_call()
    with public_scope():
        Tenant.objects.filter(pk=program_b.tenant.id).update(state=Tenant.State.SUSPENDED)
        Tenant.objects.create(slug="has-no-schema-yet", name="New")
    answer = operator.get(OF_TENANTS)
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"].startswith('attachment; filename="usage-')
    found = {
        row["tenant"]: (row["day"], row["messages"], row["calls"]) for row in downloaded(answer)
    }
    assert found == {
        program_a.tenant.slug: (today(), "1", "0"),
        program_b.tenant.slug: (today(), "0", "1"),
    }
    event = OperatorEvent.objects.latest("pk")
    assert (event.action, event.subject) == ("export", "usage")


def test_the_last_measurement_is_shown_without_entering_tenants(
    operator: Client,
    program_a: Program,
    program_b: Program,
    django_assert_max_num_queries: Callable[..., Any],
) -> None:
    set_limits(program_a.tenant.id, {Quota.MESSAGES: Limit(Decimal(1), Decimal(2))})
    program_a.send("One")
    with public_scope():
        usage.measure(Tenant.objects.get(pk=program_a.tenant.id))
    with django_assert_max_num_queries(8):
        operator.get(TENANTS)
    text = operator.post(f"{TENANTS}export/").getvalue().decode()
    rows = {row["slug"]: row for row in csv.DictReader(io.StringIO(text))}
    of_a, of_b = rows[program_a.tenant.slug], rows[program_b.tenant.slug]
    assert (of_a["messages"], of_a["reached"]) == ("1", "Messages in a month: soft limit")
    assert of_a["storage_bytes"].endswith("B")
    assert (of_b["messages"], of_b["measured_at"]) == ("", "")
    problems = operator.get("/admin/").context["attention"]["problems"]
    assert ("At a limit of a quota", 1, "quota=reached") in problems


def test_page_of_usage_requires_a_permission(db: None) -> None:
    client = Client(headers={"Host": "localhost"})
    client.force_login(User.objects.create_user("otto", is_staff=True))
    assert client.get(OF_TENANTS).status_code == 403


def test_a_fact_beyond_the_limit_is_refused_with_the_reason(
    program_a: Program, admin: Client
) -> None:
    set_limits(program_a.tenant.id, {Quota.MEMORIES: Limit(hard=Decimal(0))})
    fact = {"content": "Maria likes tea.", "kind": "statement", "metadata": "{}"}
    add = "/admin/memory/memoryentry/add/"
    page = admin.post(add, fact, follow=True)
    assert page.status_code == 200
