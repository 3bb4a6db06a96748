"""The twelve tasks of an admin, each from Today in at most five clicks.

docs/admin.md has the same list. The page counts the clicks: each press of a pointer, and two for a
choice in a select, which is opened first. Typing, Enter and shortcuts do not count.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.core.management import call_command
from playwright.sync_api import Page, expect

from memory.models import RecallExclusion
from memory.recall import recall
from memory.recall.policy import RecallPolicy
from tenants.context import tenant_scope
from tests import database
from tests.browser.conftest import USER, Aurora, BrowserUser, Visit
from tests.konstruct.admin.exporting import write_in

MAX_CLICKS = 5
OLD_HOME = "I just moved to Antwerp, please send the brochures there."
# Enter in a form also makes a click event, with detail 0.
COUNT = """
for (const [name, clicks] of [["click", 1], ["change", 2]]) {
    document.addEventListener(name, event => {
        const counts = name === "click" ? event.detail === 1 : event.target.tagName === "SELECT";
        const before = Number(sessionStorage.getItem("clicks"));
        if (event.isTrusted && counts || name === "change" && counts)
            sessionStorage.setItem("clicks", before + clicks);
    }, true);
}
"""


@contextmanager
def clicks(page: Page, expected: int) -> Iterator[None]:
    """Count the clicks of the block."""
    assert expected <= MAX_CLICKS
    page.evaluate("sessionStorage.setItem('clicks', 0)")
    yield
    assert int(page.evaluate("sessionStorage.getItem('clicks')")) == expected


def begin(visitor: BrowserUser, username: str) -> Page:
    """Log in; the first page is Today."""
    visitor.page.add_init_script(COUNT)
    visitor.log_in(username)
    return visitor.page


def menu(page: Page, entry: str) -> None:
    """Click an entry of the menu."""
    page.locator("#nav-sidebar-apps").get_by_role("link", name=entry).first.click()


def find_person(page: Page, name: str) -> None:
    """Find a person by name and open their page: two clicks."""
    menu(page, "People")
    page.locator("#searchbar").fill(name)
    page.keyboard.press("Enter")
    page.locator("#result_list").get_by_role("link").first.click()


def test_all_about_a_person(demo_tenant: Aurora, visit: Visit) -> None:
    page = begin(visit(demo_tenant.host), "admin")
    with clicks(page, 2):
        find_person(page, "Peeters")
        expect(page.get_by_text("Lea Peeters", exact=True).first).to_be_visible()
        for part in ("Facts", "Timeline", "Latest conversations"):
            expect(page.get_by_role("heading", name=part, exact=True)).to_be_visible()
        expect(page.get_by_text("Lea Peeters lives in Antwerp.").first).to_be_visible()


def test_see_the_sources_of_a_reply(demo_tenant: Aurora, visit: Visit) -> None:
    page = begin(visit(demo_tenant.host), "admin")
    with clicks(page, 3):
        menu(page, "Conversations")
        page.locator("#searchbar").fill(USER)
        page.keyboard.press("Enter")
        page.locator("#result_list").get_by_role("link").first.click()
        page.get_by_role("link", name="Why?").first.click()
        sources = page.get_by_role("complementary", name="Sources of the reply")
        expect(sources.get_by_text("The prompt, as it was sent")).to_be_visible()


def recalled(aurora: Aurora, query: str) -> set[str]:
    """Return the texts of the recalled messages."""
    policy = RecallPolicy(gate=False, top_k=50)
    result = recall(aurora.tenant.id, aurora.agent.id, "lea", query, policy=policy)
    return {hit.content for hit in result.hits}


def test_correct_a_fact_and_verify(demo_tenant: Aurora, visit: Visit) -> None:
    with tenant_scope(demo_tenant.tenant.id):
        assert OLD_HOME in recalled(demo_tenant, "Where did you move to, Lea?")
    page = begin(visit(demo_tenant.host), "admin")
    with clicks(page, 5):
        menu(page, "Search")
        page.get_by_label("Words, a meaning").fill("lives in Antwerp")
        page.keyboard.press("Enter")
        facts = page.get_by_role("region", name="Facts")
        facts.get_by_role("link", name="Lea Peeters lives in Antwerp.").first.click()
        page.get_by_role("textbox", name="Content").fill("Lea Peeters lives in Brussels.")
        page.get_by_role("button", name="Save", exact=True).click()
        find_person(page, "Peeters")
        expect(
            page.get_by_role("link", name="Lea Peeters lives in Brussels.").first
        ).to_be_visible()
    with tenant_scope(demo_tenant.tenant.id):
        assert RecallExclusion.objects.filter(message__content=OLD_HOME).exists()
        assert OLD_HOME not in recalled(demo_tenant, "Where did you move to, Lea?")


def test_set_retention_with_a_preview(demo_tenant: Aurora, visit: Visit) -> None:
    page = begin(visit(demo_tenant.host), "admin")
    with clicks(page, 3):
        menu(page, "Retention")
        page.locator("#result_list").get_by_role("link").first.click()
        page.get_by_label("Days").fill("7")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_role("heading", name="A change waits")).to_be_visible()
        expect(page.get_by_role("cell", name="messages", exact=True)).to_be_visible()


def test_make_and_try_an_agent(demo_tenant: Aurora, visit: Visit) -> None:
    page = begin(visit(demo_tenant.host), "admin")
    with clicks(page, 5):
        menu(page, "Agents")
        page.get_by_role("link", name="Add agent").click()
        page.get_by_role("textbox", name="Name").fill("Nora")
        page.get_by_label("System prompt").fill("You are Nora, who plans walks.")
        page.get_by_role("button", name="Save and continue editing").click()
        page.get_by_role("link", name="Try it").click()
        page.get_by_label("Message", exact=True).fill("Hello Nora.")
        page.get_by_role("button", name="Send").click()
        expect(page.locator(".k-turn-assistant").first).to_be_visible()


def test_show_growth_and_quality(demo_tenant: Aurora, visit: Visit) -> None:
    page = begin(visit(demo_tenant.host), "admin")
    with clicks(page, 4):
        page.get_by_label("Range").select_option("30 days")
        page.get_by_role("button", name="Show", exact=True).click()
        for chart in ("Messages", "Replies by source", "Tokens"):
            expect(page.get_by_role("region", name=chart)).to_be_visible()
        page.get_by_role("link", name="As a table").click()
        expect(page.get_by_role("columnheader", name="Messages", exact=True)).to_be_visible()


def test_roll_a_key(demo_tenant: Aurora, visit: Visit) -> None:
    page = begin(visit(demo_tenant.host), "admin")
    with clicks(page, 3):
        menu(page, "API keys")
        page.get_by_role("link", name="Roll", exact=True).first.click()
        page.get_by_role("button", name="Roll the key").click()
        expect(page.get_by_role("heading", name="Copy the key now")).to_be_visible()


def test_export_for_an_auditor(demo_tenant: Aurora, visit: Visit) -> None:
    page = begin(visit(demo_tenant.host), "admin")
    with clicks(page, 3):
        menu(page, "Records")
        page.get_by_role("link", name="Access log", exact=True).click()
        with page.expect_download() as download:
            page.get_by_role("button", name="Export", exact=True).click()
            expect(page.get_by_role("heading", name="The file is being written")).to_be_visible()
            write_in(demo_tenant.tenant.pk, UUID(page.url.split("/")[-2]))
    assert download.value.path().read_text().count("\n") > 3


def test_find_by_similar_meaning(demo_tenant: Aurora, visit: Visit) -> None:
    visitor = visit(demo_tenant.host)
    page = begin(visitor, "admin")
    with clicks(page, 1):
        menu(page, "Search")
        page.get_by_label("Words, a meaning").fill("Which food makes me ill?")
        page.keyboard.press("Enter")
        found = page.get_by_role("region", name="Messages")
        expect(found.get_by_text("shellfish").first).to_be_visible()
    visitor.open("/admin/")
    with clicks(page, 0):
        page.keyboard.press("Control+k")
        expect(page.locator("#search-input-command")).to_be_focused()
        page.keyboard.type("Which food makes me ill?")
        expect(page.locator("#command-results-list .active")).to_be_visible()
        page.keyboard.press("Enter")
        expect(found.get_by_text("shellfish").first).to_be_visible()


def test_settle_an_escalation(demo_tenant: Aurora, visit: Visit) -> None:
    page = begin(visit(demo_tenant.host), "admin")
    with clicks(page, 4):
        waiting = page.get_by_role("region", name="Waiting for a person")
        waiting.get_by_role("link", name="Escalations").last.click()
        page.get_by_role("link", name="Read and answer").first.click()
        page.get_by_label("Answer", exact=False).first.fill("The ferry leaves at nine.")
        page.get_by_role("button", name="Answer").click()
        page.get_by_role("button", name="Resolve").click()
        expect(page.get_by_text("resolved", exact=True).first).to_be_visible()


def test_operate_tenants(demo_tenant: Aurora, visit: Visit) -> None:
    page = begin(visit("localhost"), "olga")
    with clicks(page, 5):
        menu(page, "Tenants")
        page.get_by_role("link", name="aurora", exact=True).click()
        page.get_by_role("button", name="Suspend").click()
        expect(page.get_by_text("suspended", exact=True).first).to_be_visible()
        page.get_by_role("link", name="aurora", exact=True).click()
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_text("suspended", exact=True)).to_have_count(0)


def test_erase_a_person_and_hand_over_the_receipt(demo_tenant: Aurora, visit: Visit) -> None:
    page = begin(visit(demo_tenant.host), "admin")
    with clicks(page, 5):
        find_person(page, "Duarte")
        page.get_by_role("link", name="Request erasure").click()
        page.get_by_label("Reason").fill("Asked for by letter.")
        page.get_by_label("The user’s id").fill("ines")
        page.get_by_role("button", name="Request erasure").click()
        with database.as_owner():  # as manage.py owner_worker, which runs beside the server
            call_command("owner_worker", once=True, verbosity=0)
        expect(page.get_by_role("heading", name="a person was erased")).to_be_visible(timeout=15000)
        with page.expect_download() as download:
            page.get_by_role("link", name="Download as JSON").click()
    assert '"digest"' in download.value.path().read_text()
