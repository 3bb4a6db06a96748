"""Forms in a real browser: sent once by a double click, and filled in again after a new login."""

import pytest
from playwright.sync_api import Page, expect

from konstruct.api.models import ApiKey
from konstruct.orchestrator.agents import update_agent
from konstruct.orchestrator.models import Agent
from memory.models import MemoryEntry
from tenants.context import tenant_scope
from tests.browser.conftest import PASSWORD, Aurora, BrowserUser

pytestmark = pytest.mark.long

FILLED_IN = "Your input is filled in again."


def end_session(page: Page) -> None:
    """Remove the session cookie, as when the session expires."""
    page.context.clear_cookies(name="sessionid")


def log_in_again(page: Page, username: str = "admin") -> None:
    expect(page.locator("#login-form")).to_be_visible()
    page.get_by_label("Username").fill(username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#login-form")).to_have_count(0)


def test_a_double_click_sends_a_form_once(demo_tenant: Aurora, admin: BrowserUser) -> None:
    page = admin.open("/admin/api/apikey/add/")
    posted: list[str] = []
    page.on("request", lambda sent: posted.append(sent.url) if sent.method == "POST" else None)
    page.get_by_label("Name").fill("clicked twice")
    page.get_by_role("button", name="Save", exact=True).dblclick()
    expect(page.get_by_text("Copy the key now").first).to_be_visible()
    assert len(posted) == 1
    with tenant_scope(demo_tenant.tenant.id):
        assert ApiKey.objects.filter(name="clicked twice").count() == 1


def test_a_button_says_that_it_works_and_is_usable_after_going_back(admin: BrowserUser) -> None:
    page = admin.open("/admin/api/apikey/add/")
    page.get_by_label("Name").fill("slow")
    page.route("**/apikey/add/", lambda route: route.fulfill(status=204))  # stays on the page
    button = page.locator("button[name=_save]")
    button.click()
    expect(button).to_be_disabled()
    expect(button).to_have_text("Working…")
    page.evaluate("() => dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    expect(button).to_be_enabled()
    expect(button).to_have_text("Save")


def test_a_chosen_file_is_named_beside_its_field_only(admin: BrowserUser) -> None:
    page = admin.open("/admin/imports/")
    page.locator("#id_file").set_input_files(__file__)
    expect(page.get_by_label("User")).to_have_value("")
    expect(page.get_by_label("Choose file to upload")).to_have_value("test_forms.py")


def test_entries_outlive_the_session_on_the_page_of_a_row(
    demo_tenant: Aurora, admin: BrowserUser
) -> None:
    address = f"/admin/orchestrator/agent/{demo_tenant.agent.pk}/change/"
    page = admin.open(address)
    page.get_by_label("Persona").fill("Typed for ten minutes.")
    page.locator("input[name=tools]").first.check()
    end_session(page)
    page.get_by_role("button", name="Save", exact=True).click()
    log_in_again(page)
    assert page.url == admin.url + address
    expect(page.get_by_text(FILLED_IN)).to_be_visible()
    expect(page.get_by_label("Persona")).to_have_value("Typed for ten minutes.")
    expect(page.locator("input[name=tools]").first).to_be_checked()
    page.reload()
    expect(page.get_by_text(FILLED_IN)).to_have_count(0)


def test_entries_outlive_a_connection_error(demo_tenant: Aurora, admin: BrowserUser) -> None:
    address = f"/admin/agents/{demo_tenant.agent.pk}/try/"
    page = admin.open(address)
    page.get_by_label("Message", exact=True).fill("Sent without a network?")
    page.route("**/try/", lambda route: route.abort(), times=1)
    page.get_by_role("button", name="Save as a question").click()
    page.wait_for_url("chrome-error://chromewebdata/")
    page.go_back()
    assert page.url == f"{admin.url}/admin/"  # the error page has replaced that of the form
    admin.open(address)
    expect(page.get_by_text(FILLED_IN)).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_have_value("Sent without a network?")

    page = admin.open(f"/admin/escalations/{demo_tenant.escalation.pk}/")
    answer = page.locator("form[action$='/answer/'] textarea")
    answer.fill("Sent to another address?")
    page.route("**/answer/", lambda route: route.abort(), times=1)
    page.locator("form[action$='/answer/'] [type=submit]").click()
    page.wait_for_url("chrome-error://chromewebdata/")
    page.go_back()
    expect(page.get_by_text(FILLED_IN)).to_be_visible()
    expect(answer).to_have_value("Sent to another address?")


def test_a_form_with_a_slow_answer_stays_sent(demo_tenant: Aurora, admin: BrowserUser) -> None:
    admin.page.clock.install()
    page = admin.open(f"/admin/agents/{demo_tenant.agent.pk}/try/")
    page.get_by_label("Message", exact=True).fill("Think for a minute.")
    page.route("**/try/", lambda route: route.fulfill(status=204))  # stays on the page
    button = page.locator(".k-button-main")
    button.click()
    expect(button).to_have_text("Working…")
    page.clock.fast_forward(60_000)
    expect(button).to_be_disabled()


def test_an_edited_agent_is_tried_in_a_new_tab_and_the_enter_key_saves_it(
    demo_tenant: Aurora, admin: BrowserUser
) -> None:
    page = admin.open(f"/admin/orchestrator/agent/{demo_tenant.agent.pk}/change/")
    page.get_by_label("Persona").fill("Talks like a sailor.")
    with page.context.expect_page() as opened:
        page.get_by_role("button", name="Compare the edited form").click()
    tab = opened.value
    tab.get_by_label("Message", exact=True).fill("Where do I live?")
    tab.get_by_role("button", name="Send").click()
    expect(tab.locator(".k-turn-assistant")).to_have_count(2)
    expect(page.get_by_role("button", name="Save", exact=True)).to_be_enabled()
    page.get_by_role("textbox", name="Name").press("Enter")
    expect(page.get_by_text("was changed successfully")).to_be_visible()
    with tenant_scope(demo_tenant.tenant.id):
        agent = Agent.objects.get(pk=demo_tenant.agent.pk)
        assert agent.persona == "Talks like a sailor."
        update_agent(agent, persona=demo_tenant.agent.persona)


def test_facts_are_reviewed_by_the_keyboard(demo_tenant: Aurora, admin: BrowserUser) -> None:
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
    expect(page.get_by_text("No fact needs a review of this person")).to_be_visible()
    with tenant_scope(demo_tenant.tenant.id):
        states = dict(MemoryEntry.objects.entries().values_list("content", "state"))
    assert states["Sam eats no mussels."] == states["Sam reacts to seafood, badly."] == "active"
    assert (states["Sam eats no shellfish."], states["Sam is ill."]) == ("superseded", "rejected")
