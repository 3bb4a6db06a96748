"""Today: what waits, with links; and charts."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from konstruct.admin.today import RECORDS, TENANT_MENU
from konstruct.channels.delivery import DELIVERIES, ChannelRefused
from konstruct.channels.models import Delivery
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.orchestrator.models import Escalation
from memory.models import Message
from tenants.admin.sites import tenant_site
from tenants.audit.access_log import Actor
from tenants.audit.models import AccessEvent, ActorKind
from tenants.context import tenant_scope
from tests.konstruct.conftest import Browser, Program

TODAY = "/admin/"
EVA = Actor(ActorKind.PERSON, "1", "eva")


def waiting(client: Client) -> dict[str, tuple[str, str]]:
    page = client.get(TODAY)
    assert page.status_code == 200
    return {str(title): (link, count) for title, link, count in page.context["waiting"]}


def test_waiting_rows_are_counted_on_today_and_in_the_menu(
    pending_a: Program, admin: Client
) -> None:
    with tenant_scope(pending_a.tenant.id):
        request_erasure("bob", by=EVA)
    found = waiting(admin)
    assert {title: count for title, (_link, count) in found.items()} == {
        "Escalations": "1", "Tool calls": "1", "Facts to review": "1",
        "Pending replies": "1", "Erasure requests": "1",
    }  # fmt: skip
    for title in ("Escalations", "Tool calls", "Pending replies", "Erasure requests"):
        assert admin.get(found[title][0]).context["cl"].result_count == 1
    menu = admin.get(TODAY).context["sidebar_navigation"]
    badges = {item["title"]: item["badge"] for group in menu for item in group["items"]}
    assert {title: badge for title, badge in badges.items() if badge} == {
        "Escalations": "1", "Facts to review": "1",
    }  # fmt: skip


def test_rows_and_charts_are_those_that_the_user_may_see(
    pending_a: Program, browser: Browser
) -> None:
    page = browser(pending_a.tenant, "view_agent").get(TODAY)
    assert page.status_code == 200
    assert (page.context["waiting"], "charts" in page.context) == ([], False)
    auditor = browser(pending_a.tenant, "view_escalation", "view_pendingreply")
    assert waiting(auditor).keys() == {"Escalations", "Pending replies"}


def test_an_empty_tenant_beside_one_with_rows_has_nothing_on_today(
    pending_a: Program, program_b: Program, browser: Browser
) -> None:
    page = browser(program_b.tenant).get(TODAY)
    assert (page.context["waiting"], "charts" in page.context) == ([], False)
    assert "Nothing waits." in page.text


def colleague(program: Program, name: str, *permissions: str) -> None:
    with tenant_scope(program.tenant.id):
        user = User.objects.create_user(name, is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))


def test_escalation_is_assigned_and_filtered_by_assignee(
    pending_a: Program, browser: Browser, admin: Client
) -> None:
    colleague(pending_a, "eva", "change_escalation")
    colleague(pending_a, "otto", "view_escalation")
    with tenant_scope(pending_a.tenant.id):
        escalation = Escalation.objects.get()
    page = f"/admin/escalations/{escalation.pk}/"
    address = f"{page}assign/"
    assert admin.get(address).status_code == 403
    for to, assigned in (("eva", "eva"), ("otto", "eva"), ("<nobody>\0", "eva"), ("", "")):
        answer = admin.post(address, {"to": to})
        assert (answer.status_code, answer["Location"]) == (302, page)
        with tenant_scope(pending_a.tenant.id):
            assert Escalation.objects.get().assigned_to == assigned
    me = admin.get(TODAY).context["request"].user.get_username()
    admin.post(address, {"to": me})
    mine = {"assigned_to": me, "resolved_at__isempty": "1"}
    mine_page = admin.get("/admin/orchestrator/escalation/", mine)
    assert mine_page.context["cl"].result_count == 1
    with tenant_scope(pending_a.tenant.id):
        event = AccessEvent.objects.filter(action="edit").latest("id")
    assert event.detail["withheld"] == ["assigned_to"]
    auditor = browser(pending_a.tenant, "view_escalation")
    assert auditor.post(address, {"to": "eva"}).status_code == 403


def test_an_escalation_of_the_other_tenant_is_not_assigned(
    pending_a: Program, pending_b: Program, admin: Client
) -> None:
    with tenant_scope(pending_b.tenant.id):
        escalation = Escalation.objects.get()
    assert admin.post(f"/admin/escalations/{escalation.pk}/assign/", {}).status_code == 404


def test_a_failed_delivery_is_retried_with_permission(
    populated_a: Program, browser: Browser, admin: Client
) -> None:
    with tenant_scope(populated_a.tenant.id):
        message = Message.objects.filter(role="user").earliest("number")
        Delivery.objects.create(message=message, channel="slack", address={})
        DELIVERIES.enqueue(message.pk)
        DELIVERIES.record_failure(message.pk, ChannelRefused("no_such_channel"))
    page, form = "/admin/channels/delivery/", {"action": "retry", "_selected_action": message.pk}
    for client, left in ((browser(populated_a.tenant, "view_delivery"), 1), (admin, 0)):
        client.post(page, form)
        with tenant_scope(populated_a.tenant.id):
            assert DELIVERIES.jobs().failed().count() == left
            assert AccessEvent.objects.filter(action="retry").count() == 1 - left


@pytest.mark.slow
def test_the_charts_and_their_table_have_the_same_numbers(
    pending_a: Program, admin: Client
) -> None:
    charts = admin.get(f"{TODAY}?days=7").context["charts"]
    found = {series["name"]: series["total"] for chart in charts for series in chart["series"]}
    assert (found["Messages"], found["Escalations"]) == ("9", "1")
    sources = ("From facts", "From recalled messages", "From recent turns alone", "From nothing")
    assert sum(int(found[name]) for name in sources) == 3
    table = admin.get("/admin/activity/?days=7")
    assert (table.status_code, ">9</td>" in table.text) == (200, True)


@pytest.mark.parametrize("query", ["?days=9999", "?days=x%00%22%3E%3Cscript%3E"])
def test_an_invalid_range_of_days_is_ignored(
    populated_a: Program, admin: Client, query: str
) -> None:
    page = admin.get(TODAY + query)
    assert (page.status_code, page.context["days"]) == (200, 30)
    assert admin.get(f"/admin/activity/{query}").status_code == 200


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
