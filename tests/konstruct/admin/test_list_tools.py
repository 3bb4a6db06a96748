"""Tools of lists: a range of days, and the rows of an export."""

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils.translation import gettext, override

from konstruct.admin.pages import model_page
from memory.indexing import drain
from tenants.admin import recorded_admin
from tenants.admin.sites import operator_site, tenant_site
from tenants.audit.models import AccessEvent, ListExport
from tenants.context import tenant_scope
from tenants.models import OperatorEvent
from tests.konstruct.admin.agents.test_agents import AGENT_FORM
from tests.konstruct.admin.exporting import add_messages, export, exported, request_export
from tests.konstruct.conftest import Browser, Program, user_of, users_shown

MESSAGES = "/admin/memory/message/"
# Spreadsheets skip these.
SKIPPED = (" ", "\x85", "\u2028", "\u202e", "\ufeff", "\u200b", "\xad", "\ufe0f\u2060")
SECRETS_AND_VECTORS = re.compile(
    "(.* )?(digest|token|password|secret|secret key)|embedding|quantized|pseudonyms?"
)
HOSTILE = ("=1+1", "+1", "-1", "@x", "\tx", "\rx", "＝1", "</script>", "\u202eevil", 'a"b,c\nd')


def exported_messages(client: Client, query: str = "") -> list[dict[str, Any]]:
    return exported(client, MESSAGES, query)


def test_filtered_rows_are_exported_newest_first(program_a: Program, admin: Client) -> None:
    add_messages(program_a, "one", created_at=datetime(2026, 1, 1, tzinfo=UTC))
    add_messages(program_a, "two", created_at=datetime(2026, 1, 2, tzinfo=UTC))
    add_messages(program_a, "other", role="assistant")
    found = exported_messages(admin, "?role__exact=user&user=maria")
    assert [row["content"] for row in found] == ["two", "one"]
    assert {"id", "created_at", "user_id", "metadata"} <= found[0].keys()
    assert "tenant_id" not in found[0]
    with tenant_scope(program_a.tenant.id):
        asked, downloaded = AccessEvent.objects.filter(action="export").order_by("id")
    assert [event.subject for event in (asked, downloaded)] == ["message", "message"]
    assert (user_of(asked), asked.detail) == ("maria", {"format": "csv"})
    assert (users_shown(downloaded), downloaded.people_count) == (["maria"], 1)
    assert downloaded.detail == {"format": "csv", "downloaded_rows": 2}


def test_the_access_log_names_each_exported_list_in_the_language_of_the_reader(
    program_a: Program, admin: Client
) -> None:
    lists = {
        str(model._meta.verbose_name): reverse(model_page(model, "changelist"))
        for model, page in tenant_site._registry.items()
        if isinstance(page, recorded_admin.RecordedAdmin)
    }
    lists |= {name: reverse(f"admin:{name}") for name in ("conversations", "people")}
    shown = {}
    for name, address in lists.items():
        request_export(admin, address)
        log = admin.get("/admin/audit/accessevent/?action__exact=export")
        with override("de"):
            event = log.context["cl"].result_list[0]
            shown[name] = log.context["cl"].model_admin.subject_label(event)
    with override("de"):
        assert shown == {name: gettext(name) for name in lists}
    assert [name for name in lists if shown[name] == name] == []


def test_exported_cell_is_no_formula_and_keeps_its_text(program_a: Program, admin: Client) -> None:
    skipped = [f"{sign}=1" for sign in SKIPPED]
    add_messages(program_a, *HOSTILE, *skipped)
    cells = {row["content"] for row in exported_messages(admin)}
    assert cells == {f"'{text}" if text[0] in "=+-@\t\r＝" else text for text in HOSTILE} | {
        f"'{text}" for text in skipped
    }


def test_export_contains_each_row_once_with_any_number_and_time_of_rows(
    program_a: Program, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_admin, "BATCH_ROWS", 3)
    # In one transaction, so with one time.
    add_messages(program_a, *map(str, range(10)), created_at=datetime(2026, 1, 1, tzinfo=UTC))
    add_messages(program_a, "later")
    found = [row["content"] for row in exported_messages(admin)]
    assert found[0] == "later"
    assert sorted(found[1:]) == sorted(map(str, range(10)))
    assert exported_messages(admin, "?from=2030-01-01") == []


def test_an_export_takes_the_permission_of_the_list_and_its_own(
    program_a: Program, program_b: Program, browser: Browser
) -> None:
    add_messages(program_b, "of the other tenant")
    address = f"{MESSAGES}export/"
    assert browser(program_a.tenant, "view_message").post(address).status_code == 403
    assert browser(program_a.tenant, "export_list").post(address).status_code == 403
    client = browser(program_a.tenant, "export_list", "view_message")
    assert client.get(address).status_code == 403
    assert exported_messages(client) == []
    assert Client(headers={"Host": "tenant-a.localhost"}).post(address).status_code == 302
    without = browser(program_a.tenant, "view_message").get(MESSAGES)
    assert "/export/" not in without.text
    with tenant_scope(program_a.tenant.id):
        for role in Group.objects.all():
            assert role.permissions.filter(codename="export_list").exists(), role


@pytest.mark.slow
def test_every_list_is_exported_with_its_columns_and_without_vectors_and_secrets(
    pending_a: Program, admin: Client, operator: Client
) -> None:
    admin.cookies["time_zone"] = "Asia%2FKolkata"
    # The list of exports is the last one, when its length does not change any more.
    models = sorted(tenant_site._registry, key=lambda model: model is ListExport)
    listed = [(admin, model) for model in models]
    listed += [(operator, model) for model in operator_site._registry]
    for reader, model in listed:
        page = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        shown = reader.get(page).context["cl"]
        if reader is admin:
            text = export(admin, page)
        else:
            text = reader.post(f"{page}export/").getvalue().decode()
        columns, *rows = csv.reader(io.StringIO(text, newline=""))
        # A log has entries of the list and of this export.
        own_entries = 2 if model in (AccessEvent, OperatorEvent) else 0
        assert len(rows) == shown.result_count + own_entries, page
        assert f"{page}export/?" in reader.get(page).text
        missing = [
            str(field.verbose_name)
            for field in model._meta.concrete_fields
            if field.attname not in {*columns, "tenant_id"}
        ]
        # Whatever an export leaves out is a secret or a vector, and the list names it.
        assert reader.get(page).context["list_tools"]["left_out"] == ", ".join(missing), page
        assert all(map(SECRETS_AND_VECTORS.fullmatch, missing)), page
        names = {getattr(column, "__name__", column) for column in shown.list_display}
        names = {model._meta.model_name if name == "__str__" else name for name in names}
        fields = {field.name: field.attname for field in model._meta.concrete_fields}
        assert {fields.get(name, name) for name in names} - {"action_checkbox"} <= {*columns}, page
        assert not {name for name in columns if "password" in name or "secret" in name}, page
        assert not {*columns} & {"embedding", "quantized", "tenant_id", "token", "bot_token"}, page
        assert ("user_id" in columns and reader is admin) == ("person_name" in columns), page
        assert "<a " not in text
        assert not re.search(r":[0-9]{2}(\.[0-9]{6})?\+00:00", text) or reader is operator, page


def test_an_export_of_the_access_log_and_of_facts_says_what_the_list_says(
    populated_a: Program, admin: Client
) -> None:
    admin.cookies["time_zone"] = "Asia%2FKolkata"
    agent_page = f"/admin/orchestrator/agent/{populated_a.agent.pk}/change/"
    admin.post(agent_page, {**AGENT_FORM, "name": "eve"})
    with tenant_scope(populated_a.tenant.id):
        event = AccessEvent.objects.filter(action="edit").latest("pk")
    row = exported(admin, "/admin/audit/accessevent/", "?action__exact=edit")[0]
    assert datetime.fromisoformat(row["created_at"]) == event.created_at
    assert row["created_at"].endswith("+05:30")
    assert (row["action"], row["subject"], row["subject_label"]) == ("edit", "agent", "agent")
    assert "name" in json.loads(row["detail"])["withheld"]
    (fact,) = exported(admin, "/admin/memory/memoryentry/")
    assert (fact["status"], fact["state"], fact["agent"]) == ("current", "active", "eve")
    (key,) = exported(admin, "/admin/api/apikey/")
    assert key["state"] == "valid"
    assert key["scope_names"]


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("?from=2026-01-02&to=2026-01-02", 1),
        ("?from=2026-01-02", 2),
        ("?to=2026-01-02", 2),
        ("?from=2027-01-01", 0),
        ("?from=x&to=2026-13-45", 3),
        ("?from=0000-01-01&to=9999-12-31", 3),
        ("?from=%00", 3),
    ],
)
def test_a_range_has_its_first_and_its_last_day(
    program_a: Program, admin: Client, query: str, number: int
) -> None:
    start = datetime(2026, 1, 1, 23, 59, tzinfo=UTC)
    for days in range(3):
        add_messages(program_a, "x", created_at=start + timedelta(days=days))
    page = admin.get(MESSAGES + query)
    assert page.context["cl"].result_count == number
    assert ("No message matches these filters." in page.text) == (number == 0)


def time_shown(client: Client) -> str:
    page = client.get(MESSAGES).text
    return page.partition("1 Jul 2026, ")[2][:8]


def test_times_and_ranges_of_dates_are_in_the_zone_of_the_browser(
    program_a: Program, admin: Client
) -> None:
    add_messages(program_a, "Hi", created_at=datetime(2026, 7, 1, 12, 30, 15, tzinfo=UTC))
    assert time_shown(admin) == "12:30:15"
    admin.cookies["time_zone"] = "Asia%2FTokyo"
    assert time_shown(admin) == "21:30:15"
    admin.cookies["time_zone"] = "Asia%2FNowhere"
    assert time_shown(admin) == "12:30:15"
    admin.cookies["time_zone"] = "Pacific%2FKiritimati"  # UTC+14
    found = admin.get(f"{MESSAGES}?from=2026-07-02&to=2026-07-02")
    assert found.context["cl"].result_count == 1


PERMISSIONS = {"conversations": "view_message", "people": "view_scope"}
DAY = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def program(program_a: Program) -> Program:
    """Tenant A, with messages of three people on three days. One of them writes formulas."""
    for days, user in enumerate(("ann", "=bob()", "carl")):
        import_message(
            program_a, user, "=1+1 my sister lives in Lisbon", DAY + timedelta(days=days)
        )
    return program_a


def import_message(program: Program, user: str, content: str, at: datetime) -> None:
    line = {
        "external_id": f"{user} {at}",
        "agent": program.agent.name,
        "user_id": user,
        "thread_id": f"of {user}",
        "role": "user",
        "content": content,
        "created_at": at.isoformat(),
    }
    answer = program.post("/api/v1/messages/import/", {"messages": [line]})
    assert answer.status_code == 200, answer.content
    drain(program.tenant.id)


def test_conversations_of_a_range_are_listed_and_exported(
    program: Program, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_admin, "BATCH_ROWS", 2)
    page = admin.get("/admin/conversations/?from=2026-01-02&to=2026-01-02")
    assert [row.user_id for row in page.context["cl"].result_list] == ["=bob()"]
    rows = exported(admin, "/admin/conversations/")
    assert [row["user_id"] for row in rows] == ["carl", "'=bob()", "ann"]
    assert rows[0]["agent"] == program.agent.name
    rows = exported(admin, "/admin/conversations/", "?user=ann&to=2026-01-01")
    assert [(row["user_id"], row["thread_id"]) for row in rows] == [("ann", "of ann")]
    (row,) = exported(admin, "/admin/conversations/", "?from=2026-01-02&to=2026-01-02")
    assert (row["user_id"], row["content"][:5]) == ("'=bob()", "'=1+1")
    with tenant_scope(program.tenant.id):
        event = AccessEvent.objects.filter(action="export").latest("id")
    assert (event.subject, event.detail["downloaded_rows"]) == ("conversations", 1)
    assert users_shown(event) == ["=bob()"]


def test_people_are_listed_found_and_exported(
    program: Program, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_admin, "BATCH_ROWS", 2)

    def people_listed(query: str) -> list[str]:
        page = admin.get(f"/admin/people/{query}")
        return [person.user_id for person in page.context["cl"].result_list]

    assert people_listed("") == ["=bob()", "ann", "carl"]
    assert people_listed("?q=ca") == ["carl"]
    rows = exported(admin, "/admin/people/")
    assert [row["user_id"] for row in rows] == ["carl", "ann", "'=bob()"]
    assert exported(admin, "/admin/people/", "?q=nobody") == []


@pytest.mark.parametrize("page", PERMISSIONS)
def test_an_export_of_a_page_takes_its_permission_and_that_to_export(
    program: Program, program_b: Program, browser: Browser, page: str
) -> None:
    address = f"/admin/{page}/export/"
    permission = PERMISSIONS[page]
    assert browser(program.tenant, permission).post(address).status_code == 403
    assert browser(program.tenant, "export_list").post(address).status_code == 403
    client = browser(program.tenant, permission, "export_list")
    assert client.get(address).status_code == 403
    exported(client, f"/admin/{page}/")
    assert "/export/" not in browser(program.tenant, permission).get(f"/admin/{page}/").text
    assert f"{page}/export/?" in client.get(f"/admin/{page}/").text
    other = browser(program_b.tenant)
    assert exported(other, f"/admin/{page}/") == []
