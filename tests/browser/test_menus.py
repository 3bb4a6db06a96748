"""Menus, search, filters and the theme of the admin, under a policy without eval."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Aurora, BrowserUser

pytestmark = pytest.mark.long


def test_menus_work_and_no_text_is_evaluated(
    demo_tenant: Aurora, visit: Callable[..., BrowserUser]
) -> None:
    admin = visit(demo_tenant.host)
    page = admin.page
    answer = page.goto(f"{admin.url}/admin/login/")
    assert answer is not None
    assert "script-src 'self';" in answer.headers["content-security-policy"]

    admin.log_in("admin")

    # The sidebar closes, stays closed on the next page, and opens again.
    sidebar, toggle = page.locator("#nav-sidebar"), page.get_by_text("dock_to_right").first
    for _ in range(2):
        toggle.click()
        expect(sidebar).to_be_hidden()
        page.reload()
        expect(sidebar).to_be_hidden()
        toggle.click()
        expect(sidebar).to_be_visible()

    # The user menu has the theme, and closes by a click elsewhere.
    page.get_by_text("unfold_more").click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    page.get_by_text("Dark", exact=True).click()
    expect(page.locator("html")).to_have_class("dark")
    page.get_by_text("Light", exact=True).click()
    expect(page.locator("html")).not_to_have_class("dark")
    page.get_by_role("heading", name="Today").click()
    expect(page.get_by_role("button", name="Log out")).to_be_hidden()

    # Filters open and close, by a click.
    admin.open("/admin/audit/accessevent/")
    filters = page.locator("#changelist-filter")
    page.get_by_role("button", name="Filters", exact=True).click()
    expect(filters).to_be_visible()
    page.locator("#changelist-filter-close").click()
    expect(filters).to_be_hidden()
    # A key focuses the search field.
    page.keyboard.press("/")
    expect(page.locator("#searchbar")).to_be_focused()

    # Actions appear after a row is selected.
    admin.open("/admin/api/apikey/")
    action = page.locator("select[name=action]")
    expect(action).to_be_hidden()
    page.locator("input.action-select").first.check()
    expect(action).to_be_visible()

    # On a phone the sidebar covers the page.
    page.set_viewport_size({"width": 390, "height": 844})
    expect(sidebar).to_be_hidden()
    page.get_by_text("dock_to_right").last.click()
    expect(sidebar).to_be_visible()
