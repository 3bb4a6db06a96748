"""Today and lists in a real browser."""

import re
from collections.abc import Callable

from playwright.sync_api import expect

from konstruct.orchestrator.models import Escalation
from tenants.context import tenant_scope
from tests.browser.conftest import Aurora, BrowserUser


def test_a_click_on_a_day_of_a_chart_opens_its_rows(
    demo_tenant: Aurora, visit: Callable[..., BrowserUser]
) -> None:
    admin = visit(demo_tenant.host)
    admin.log_in("admin")
    page = admin.open("/admin/?days=7")
    chart = page.get_by_role("region", name="Messages").locator("canvas")
    chart.scroll_into_view_if_needed()
    page.wait_for_function("() => Chart.getChart(document.querySelector('[data-chart] canvas'))")
    size = chart.bounding_box()
    assert size is not None
    chart.click(position={"x": size["width"] - 20, "y": size["height"] / 2})
    page.wait_for_url(re.compile("/admin/memory/message/.*created_at__gte"))
    expect(page.get_by_role("link", name="CSV")).to_be_visible()


def test_an_escalation_is_assigned_on_today(
    demo_tenant: Aurora, visit: Callable[..., BrowserUser]
) -> None:
    admin = visit(demo_tenant.host)
    admin.log_in("admin")
    page = admin.open("/admin/")
    page.get_by_role("region", name="Escalations").get_by_role("button", name="Assign").click()
    expect(page.get_by_text("Assigned to admin.")).to_be_visible()
    with tenant_scope(demo_tenant.tenant.id):
        assert Escalation.objects.get(pk=demo_tenant.escalation.pk).assigned_to == "admin"
