"""Today and lists in a real browser."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from konstruct.orchestrator.models import Escalation
from tenants.context import tenant_scope
from tests.browser.conftest import Aurora, BrowserUser

pytestmark = pytest.mark.long


def test_an_escalation_of_today_is_assigned(
    demo_tenant: Aurora, visit: Callable[..., BrowserUser]
) -> None:
    admin = visit(demo_tenant.host)
    admin.log_in("admin")
    page = admin.open("/admin/")
    page.locator(".k-waiting li", has_text="Escalation").get_by_role("link").first.click()
    page.get_by_role("button", name="Assign").click()
    expect(page.get_by_text("Assigned to admin.")).to_be_visible()
    with tenant_scope(demo_tenant.tenant.id):
        assert Escalation.objects.get(pk=demo_tenant.escalation.pk).assigned_to == "admin"
