"""An operator's work in a real browser: a tenant is registered, set up, and used."""

from django.core.management import call_command
from playwright.sync_api import expect

from tests import database
from tests.browser.conftest import PASSWORD, Aurora, Visit


def test_an_operator_creates_a_tenant_and_invites_its_first_admin(
    demo_tenant: Aurora, visit: Visit
) -> None:
    operator = visit("localhost")
    operator.log_in("olga")
    page = operator.open("/admin/tenants/tenant/add/")
    page.get_by_label("Slug").fill("cedar")
    page.locator("#id_name").fill("Cedar Bikes")
    page.get_by_label("First admin").fill("ada@example.com")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("is being set up").first).to_be_visible()
    expect(page.get_by_label("Mail address")).to_have_value("ada@example.com")
    page.get_by_role("button", name="Show a link to copy").click()
    link = page.locator("#invitation-link").inner_text()
    page.get_by_role("link", name="To the tenant").click()
    expect(page.get_by_text("being set up", exact=True)).to_be_visible()

    with database.as_owner():  # as manage.py owner_worker, which runs beside the server
        call_command("owner_worker", once=True, verbosity=0)

    page.reload()
    expect(page.get_by_text("up to date").first).to_be_visible()
    ada = visit("cedar.localhost")
    assert link.startswith(f"{ada.url}/admin/first-admin/")
    ada.open(link.removeprefix(ada.url))
    ada.page.locator("#id_username").fill("ada")
    ada.page.locator("#id_password1").fill(PASSWORD)
    ada.page.locator("#id_password2").fill(PASSWORD)
    ada.page.get_by_role("button", name="Save").click()
    expect(ada.page.get_by_text("You are the first admin: log in.")).to_be_visible()
    ada.log_in("ada")
    expect(ada.page.get_by_text("Cedar Bikes").first).to_be_visible()
    # Operators see no content of the tenant.
    assert page.request.get(f"{operator.url}/admin/memory/message/").status == 404
