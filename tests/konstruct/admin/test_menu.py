"""The menu: its size, and the tables that it leads to."""

from django.test import Client

from konstruct.admin.menu import RECORDS, TENANT_MENU
from tenants.admin.sites import tenant_site
from tests.konstruct.conftest import Browser, Program


def test_the_menu_has_fourteen_entries_in_three_groups(program_a: Program, admin: Client) -> None:
    page = admin.get("/admin/")
    groups = page.context["sidebar_navigation"]
    assert [str(group["title"]) for group in groups] == ["Work", "", "Settings"]
    assert sum(len(group["items"]) for group in groups) == 14


def test_every_list_is_in_the_menu_or_in_records() -> None:
    entries = [target for _, entries in TENANT_MENU for *_, target in entries]
    entries += [target for _, entries in RECORDS for target in entries]
    assert len(entries) == len(set(entries))
    lists = {model._meta.label_lower for model in tenant_site._registry}
    assert lists == {entry for entry in entries if "." in entry}


def test_records_has_the_permitted_tables(program_a: Program, browser: Browser) -> None:
    page = browser(program_a.tenant).get("/admin/records/")
    links = [link for _, entries in page.context["groups"] for _, _, link, _ in entries]
    assert len(links) == sum(len(entries) for _, entries in RECORDS)
    page = browser(program_a.tenant, "view_message").get("/admin/records/")
    links = [link for _, entries in page.context["groups"] for _, _, link, _ in entries]
    assert links == ["/admin/memory/message/", "/admin/sessions/", "/admin/activity/"]
    outsider = browser(program_a.tenant, "view_agent")
    assert outsider.get("/admin/records/").status_code == 403
    assert "/admin/records/" not in outsider.get("/admin/").text
