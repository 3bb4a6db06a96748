"""The review of facts by the keyboard, in a real browser."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from memory.models import MemoryEntry
from tenants.context import tenant_scope
from tests.browser.conftest import Aurora, BrowserUser

pytestmark = pytest.mark.long


def test_facts_are_reviewed_by_the_keyboard(
    demo_tenant: Aurora, visit: Callable[..., BrowserUser]
) -> None:
    admin = visit(demo_tenant.host)
    admin.log_in("admin")
    page = admin.open("/admin/facts/review/?user=zoe")
    fact = page.get_by_role("region", name="Proposed fact").locator(".k-review-fact")
    expect(fact).to_have_text("Sam eats no mussels.")
    expect(page.get_by_role("region", name="Evidence").locator("mark")).to_have_text("allergic")
    expect(page.locator(".k-diff ins")).to_have_text("mussels")
    page.keyboard.press("a")
    expect(fact).to_have_text("Sam reacts to seafood.")
    page.keyboard.press("e")
    page.get_by_role("textbox", name="Fact").fill("Sam reacts to seafood, badly.")
    page.get_by_role("button", name="Save and approve").click()
    expect(fact).to_have_text("Sam is ill.")
    page.keyboard.press("r")
    page.keyboard.type("A guess, e a r.")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No fact needs a review with these filters.")).to_be_visible()
    with tenant_scope(demo_tenant.tenant.id):
        states = dict(MemoryEntry.objects.entries().values_list("content", "state"))
    assert states["Sam eats no mussels."] == states["Sam reacts to seafood, badly."] == "active"
    assert (states["Sam eats no shellfish."], states["Sam is ill."]) == ("superseded", "rejected")
