"""An operator's work in a real browser: a tenant is registered, set up, and used."""

from collections.abc import Callable

from django.core.management import call_command
from playwright.sync_api import expect

from tests import database
from tests.browser.conftest import PASSWORD, Aurora, Visitor


def test_an_operator_creates_a_tenant_and_it_becomes_usable(
    standing_aurora: Aurora, visit: Callable[..., Visitor]
) -> None:
    operator = visit("localhost")
    operator.log_in("olga")
    page = operator.open("/admin/tenants/tenant/add/")
    page.get_by_label("Slug").fill("cedar")
    page.get_by_label("Name", exact=False).first.fill("Cedar Bikes")
    page.locator("#id_domains-0-domain").fill("cedar.localhost")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("is being set up")).to_be_visible()
    expect(page.get_by_text("being set up", exact=True)).to_be_visible()

    with database.as_owner():  # as manage.py owner_worker, which runs beside the server
        call_command("owner_worker", once=True, verbosity=0)
        call_command(
            "create_tenant_admin", tenant="cedar", username="ada", password=PASSWORD, verbosity=0
        )

    page.reload()
    expect(page.get_by_text("up to date").first).to_be_visible()
    ada = visit("cedar.localhost")
    ada.log_in("ada")
    expect(ada.page.get_by_text("Cedar Bikes").first).to_be_visible()
    # Operators see none of what is inside.
    assert page.request.get(f"{operator.url}/admin/memory/message/").status == 404
