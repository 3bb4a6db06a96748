"""The page of usage: quotas, days of a month, and the CSV."""

from collections.abc import Callable
from decimal import Decimal

from django.test import Client

from konstruct.orchestrator import usage
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tenants.limits.quotas import Limit, Quota, set_limits
from tests.konstruct.conftest import Program
from tests.konstruct.metered import metered_call

PAGE = "/admin/usage/"


def test_quotas_and_days_are_shown(
    program_a: Program, program_b: Program, browser: Callable[..., Client]
) -> None:
    set_limits(program_a.tenant.id, {Quota.MESSAGES: Limit(Decimal(1), Decimal(4))})
    with tenant_scope(program_a.tenant.id):
        usage.count(messages=3, memories=3)
        metered_call()
    page = browser(program_a.tenant).get(PAGE)
    (messages,) = [row for row in page.context["quotas"] if row["label"] == Quota.MESSAGES.label]
    assert (messages["used"], messages["share"], messages["level"]) == (3, 75, "soft")
    ((_, counts),) = page.context["days"]
    assert (counts.messages, counts.calls, counts.tokens) == (3, 1, 110)
    with tenant_scope(program_a.tenant.id):
        assert AccessEvent.objects.filter(subject="usage").exists()
    other = browser(program_b.tenant).get(PAGE)
    assert other.context["days"] == []
    assert browser(program_a.tenant).get(f"{PAGE}?month=nonsense").status_code == 200
    assert browser(program_a.tenant).get(f"{PAGE}?month=2001-01").context["days"] == []


def test_the_month_is_downloaded(program_a: Program, browser: Callable[..., Client]) -> None:
    answer = browser(program_a.tenant).get(f"{PAGE}?csv=1")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    lines = b"".join(answer.streaming_content).decode().splitlines()
    assert lines[0].startswith("tenant,month,messages")
    assert lines[1].startswith(f"{program_a.tenant.slug},")


def test_a_fact_beyond_the_limit_is_refused_with_the_reason(
    program_a: Program, browser: Callable[..., Client]
) -> None:
    set_limits(program_a.tenant.id, {Quota.MEMORIES: Limit(hard=Decimal(0))})
    fact = {"content": "Maria likes tea.", "kind": "statement", "metadata": "{}"}
    add = "/admin/memory/memoryentry/add/"
    page = browser(program_a.tenant).post(add, fact, follow=True)
    assert page.status_code == 200
