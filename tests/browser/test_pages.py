"""Pages with a month of data in a real browser, wide and narrow, light and dark: axe and the width.

test_every_page.py opens every page. This module tests pages whose content differs with real data.
`make pictures` opens all of them, and stores screenshots in docs/images/.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import USER, Aurora, BrowserUser, Visit

pytestmark = pytest.mark.long

QUESTION = "Which food allergy do I have?"
# Rules of axe for a further size or scheme: colours, and content that only appears there. One page
# has all rules, because the frame of all pages is the same.
RULES_OF_VARIANTS = ["color-contrast", "link-in-text-block", "scrollable-region-focusable"]
PAGE_WITH_ALL_RULES = "dashboard"
# The folder of the pictures.
PICTURES = os.environ.get("KONSTRUCT_PICTURES")
SIZES = {"wide": {"width": 1440, "height": 900}, "narrow": {"width": 390, "height": 844}}


def pages_of(aurora: Aurora) -> dict[str, str]:
    """Return pages with charts, marked words, empty results and long timelines, by their names."""
    return {
        "dashboard": "/admin/",
        "activity": "/admin/activity/",
        "search": "/admin/search/?q=sick child",
        "search-empty": "/admin/search/?q=xyzzy",
        "conversation": f"/admin/conversations/{aurora.reply.pk}/?why={aurora.reply.pk}",
        "memories": f"/admin/memories/?agent={aurora.agent.pk}&user={USER}&q={QUESTION}",
        "fact-history": f"/admin/memory/memoryentry/{aurora.fact}/history/",
        "fact-review": "/admin/facts/review/",
        "person": f"/admin/people/person/?user={USER}",
        "person-on-a-day": f"/admin/people/person/?user={USER}&at=2026-01-01",
        "escalation": f"/admin/escalations/{aurora.escalation.pk}/",
    }


def page_variants() -> list[tuple[str, str]]:
    """Yield sizes and schemes: two that differ in both, or all of them for the pictures."""
    if PICTURES:
        return [(size, scheme) for size in SIZES for scheme in ("light", "dark")]
    return [("wide", "light"), ("narrow", "dark")]


def look(visitor: BrowserUser, name: str, path: str) -> list[tuple[str, ...]]:
    """Open a page. Return the findings of axe."""
    return look_at(visitor.open(path), name)


def look_at(page: Page, name: str) -> list[tuple[str, ...]]:
    """Return the findings of axe in an open page, and whether it is too wide, in each look."""
    serious: list[tuple[str, ...]] = []
    # Alpine has rendered the page.
    expect(page.locator("[x-cloak]")).to_have_count(0)
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    for size, scheme in page_variants():
        page.set_viewport_size(SIZES[size])
        # Unfold reads the scheme of the browser when a page opens, and later its own button.
        page.emulate_media(color_scheme=scheme)
        page.evaluate("theme => Alpine.$data(document.documentElement).switchTheme(theme)", scheme)
        page.wait_for_function(
            "dark => document.documentElement.classList.contains('dark') === dark",
            arg=scheme == "dark",
        )
        if PICTURES:
            picture = Path(PICTURES) / f"{name}-{size}-{scheme}.png"
            page.screenshot(path=picture, animations="disabled")
            assert picture.stat().st_size > 5_000
        too_wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        if too_wide:
            serious.append((name, size, scheme, "too wide", f"by {too_wide} px"))
        found = Axe().run(page, options=options).response["violations"]
        serious += [
            (name, size, scheme, rule["id"], node["html"][:200])
            for rule in found
            if rule["impact"] != "minor"
            for node in rule["nodes"]
        ]
        if name != PAGE_WITH_ALL_RULES:
            options["runOnly"] = RULES_OF_VARIANTS
    return serious


def test_pages_with_a_month_of_data_are_accessible(demo_tenant: Aurora, visit: Visit) -> None:
    operators = {
        "tenants": "/admin/tenants/tenant/",
        "tenant": f"/admin/tenants/tenant/{demo_tenant.tenant.id}/change/",
    }
    admin = visit(demo_tenant.host)
    found = look(admin, "login", "/admin/login/")
    admin.log_in("admin")
    for name, path in pages_of(demo_tenant).items():
        found += look(admin, name, path)
    operator = visit("localhost")
    operator.log_in("olga")
    for name, path in operators.items():
        found += look(operator, name, path)
    assert found == []
