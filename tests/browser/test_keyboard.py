"""Menus, dialogs and search of the admin, with the keyboard only."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Aurora, BrowserUser, Visit

pytestmark = pytest.mark.long


def test_menus_opened_by_keyboard_close_on_escape_and_restore_focus(admin: BrowserUser) -> None:
    page = admin.open("/admin/memory/memoryentry/")

    # The first Tab skips the menu.
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip the menu")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()

    export = page.get_by_role("button", name="Export", exact=True)
    export.focus()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog", name="Search everything")).to_be_visible()
    expect(page.locator("#search-input-command")).to_be_focused()
    for _ in range(4):  # Tab leads from the last control of the dialog to its first, or to none
        page.keyboard.press("Tab")
        assert page.evaluate(
            "document.activeElement.matches('body, [role=dialog], [role=dialog] *')"
        )
    page.locator("#search-input-command").focus()
    page.keyboard.press("Escape")
    expect(export).to_be_focused()

    # Also from a field. Enter takes the first result.
    page.locator("#searchbar").focus()
    page.keyboard.press("Control+k")
    expect(page.locator("#search-input-command")).to_be_focused()
    page.keyboard.type("sick child")
    expect(page.locator("#command-results-list .active")).to_contain_text("Search facts and")
    page.keyboard.press("Enter")
    page.wait_for_url("**/admin/search/?q=sick+child")
    page = admin.open("/admin/memory/memoryentry/")

    account = page.locator("[x-on\\:click*='openUserLinks =']")
    expect(account).to_have_attribute("aria-expanded", "false")
    account.press("Enter")
    expect(account).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Log out")).to_be_hidden()
    expect(account).to_be_focused()

    menu = page.locator("#main [x-on\\:click*='sidebarDesktopOpen =']")
    for is_open in ("false", "true"):
        menu.press("Enter")
        expect(menu).to_have_attribute("aria-expanded", is_open)

    filters = page.get_by_role("button", name="Filters", exact=True)
    filters.press("Enter")
    expect(filters).to_have_attribute("aria-expanded", "true")
    expect(page.locator("#changelist-filter :focus")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#changelist-filter")).to_be_hidden()
    expect(filters).to_be_focused()


def test_the_sources_of_a_reply_are_next_to_its_link(
    demo_tenant: Aurora, admin: BrowserUser
) -> None:
    page = admin.open(f"/admin/conversations/{demo_tenant.reply.pk}/?why={demo_tenant.reply.pk}")
    page.locator("a[aria-current=true]", has_text="Why?").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    sources = page.get_by_role("complementary", name="Sources of the reply")
    expect(sources).to_be_focused()
    page.keyboard.press("Tab")
    expect(sources.locator(":focus")).to_be_visible()


def test_menus_work_and_no_text_is_evaluated(demo_tenant: Aurora, visit: Visit) -> None:
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
