"""A person in the admin: agents that know them, export, and the request of an erasure."""

import json
import re

import pytest
from django.test import Client

from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.identities.person_export import NOT_EXPORTED, exported_models, part_name
from konstruct.privacy import jobs
from memory.conversations.short_term import append_message
from memory.facts import LongTermMemory, confirm
from memory.facts.rows import exclude_from_recall
from memory.models import AuthorKind, Message
from memory.models.facts import Author
from tenants.audit.models import AccessEvent, ErasureRequest, about_people
from tenants.audit.people import Person, pseudonym
from tenants.context import tenant_scope
from tenants.personal_data import personal_tables
from tests import database
from tests.konstruct.admin.conftest import CONTENTS
from tests.konstruct.conftest import Browser, Program, SendMessage, user_of

PEOPLE, PERSON = "/admin/people/", "/admin/people/person/"
EXPORT, ERASE = f"{PERSON}export/?user=maria", f"{PERSON}erase/?user=maria"


def test_people_are_found_by_name_and_account_and_shown_by_name(
    populated_a: Program, browser: Browser, admin: Client, send_message: SendMessage
) -> None:
    send_message(populated_a, "Hello.", answered=False, user_id="u-17", name="Łucja Nowak")
    send_message(populated_a, "Hello.", answered=False, user_id="u-17")
    with tenant_scope(populated_a.tenant.id):
        identity = channel_identities.identity_of("slack", "T1", "U024")
        channel_identities.link(identity, "u-17", by="eva")
    for text in ("lucja", "now", "u-17", "U024"):
        page = admin.get(PEOPLE, {"q": text})
        assert [person.user_id for person in page.context["cl"].result_list] == ["u-17"]
        assert page.text.index("Łucja Nowak") < page.text.index(">u-17</bdi>")
    # A name in place of an id leads there.
    page = admin.get(PERSON, {"user": "Łucja Nowak"}, follow=True)
    assert [person.user_id for person in page.context["cl"].result_list] == ["u-17"]
    # A user without the permission to view identities does not find people by them.
    looker = browser(populated_a.tenant, "view_scope")
    assert not looker.get(PEOPLE, {"q": "U024"}).context["cl"].result_list


def test_a_person_is_shown_across_agents(populated_a: Program, admin: Client) -> None:
    page = admin.get(PERSON, {"user": "maria"})
    assert "likes green tea" in page.text
    # Not embedded yet, but listed.
    assert admin.get(PERSON, {"user": "bob"}).status_code == 200
    assert "Nothing is known" in admin.get(PERSON, {"user": "eve"}, follow=True).text


def export_of(client: Client, **form: str) -> str:
    client.cookies["time_zone"] = "Asia%2FKolkata"
    answer = client.post(EXPORT, form)
    return answer.content.decode()


@pytest.mark.slow
def test_export_contains_all_rows_of_the_person_and_none_of_others(
    pending_a: Program, populated_b: Program, admin: Client
) -> None:
    with tenant_scope(pending_a.tenant.id):
        message = Message.objects.filter(content=CONTENTS[0]).earliest("number")
        exclude_from_recall(
            message, author=Author(AuthorKind.PERSON, "1", "eva"), reason="Her wish."
        )
        rows = {
            table: model._default_manager.filter(user_id="maria").count()
            for table, model in exported_models().items()
            if personal_tables()[table].subject == "user_id"
        }
        # One entry more: that of the export.
        entries = AccessEvent.objects.filter(about_people("maria", "U1")).count() + 1
        rows["audit_accessevent"] = entries
        rows["audit_person"] += 1  # of the linked id
    append_message(pending_a.tenant.id, pending_a.agent.pk, "maria", "user", "And a turn.")
    text = export_of(admin)
    exported = json.loads(text)
    assert (exported["user_id"], exported["user_ids"]) == ("maria", ["maria", "U1"])
    found = {
        name: len(part) for name, part in exported.items() if name not in ("user_id", "user_ids")
    }
    names = {table: part_name(model) for table, model in exported_models().items()}
    assert {table: found[names[table]] for table in rows} == rows
    for part in ("messages", "facts", "fact_evidence", "fact_events", "extraction_runs"):
        assert exported[part], part
    assert exported["recall_exclusions"][0]["reason"] == "Her wish."
    lisbon = next(fact for fact in exported["facts"] if "in Lisbon" in fact["content"])
    assert (lisbon["state"], lisbon["slot"]) == ("proposed", "sister_city")
    assert exported["fact_evidence"][0]["quote"] in message.content
    assert exported["fact_events"][0]["author_kind"]
    assert exported["messages"][0]["content"] == message.content
    assert exported["messages"][0]["created_at"].endswith("+05:30")
    fact, eva = lisbon["memory_id"], Author(AuthorKind.PERSON, "1", "eva")
    with tenant_scope(pending_a.tenant.id):
        LongTermMemory().update(fact, pending_a.tenant.id, content="In Porto.", author=eva)
        confirm(fact, author=eva)
    page = export_of(admin, **{"as": "page"})
    events = page.partition("<h2>Events of facts</h2>")[2].partition("<h2>")[0]
    assert (events.count("lives in Lisbon.</dd>"), events.count("In Porto.</dd>")) == (1, 2)
    for foreign in ("tenant-b", "I wait in", "embedding"):
        assert foreign not in page + text.replace("embedding_model", "").replace("embeddings", "")
    for shown in (
        "Evidence of facts",
        "Lisbon",
        "proposed",
        "Her wish.",
        " IST",
        "person_export.css",
    ):
        assert shown in page, shown
    assert "<script>alert" not in page
    assert " UTC" not in page
    admin.cookies["django_language"] = "de"
    german, label = export_of(admin, **{"as": "page"}), re.compile("<(?:dt|h2)>(.*?)</")
    same = {"Agent", "Name", "Person", "Thread"}
    assert {*label.findall(page)} & {*label.findall(german)} == same
    for shown in ("Letzte Beiträge", '<dt>Rolle</dt><dd dir="auto">Benutzer', "Gesundheit"):
        assert shown in german, shown
    timeline = admin.get(f"{PERSON}?user=maria").text
    assert "Gesundheit" in timeline
    assert ">health<" not in german + timeline


def test_each_table_with_personal_data_is_exported_or_left_out_for_a_reason() -> None:
    assert {*exported_models(), *NOT_EXPORTED} == {*personal_tables()}
    assert not {*exported_models()} & {*NOT_EXPORTED}


def test_an_erasure_is_asked_for_once_the_id_was_typed(populated_a: Program, admin: Client) -> None:
    assert "This is not the id" in admin.post(ERASE, {"typed": "mario"}).text
    with tenant_scope(populated_a.tenant.id):
        assert not ErasureRequest.objects.exists()
    done = admin.post(ERASE, {"typed": "maria", "reason": "Her own wish."}, follow=True)
    assert "The erasure is requested." in done.text
    admin.post(ERASE, {"typed": "maria"})
    with tenant_scope(populated_a.tenant.id):
        request = ErasureRequest.objects.get()
        event = AccessEvent.objects.filter(action="erase").earliest("id")
        # Until the owner worker has run, all rows exist.
        assert Message.objects.filter(user_id="maria").exists()
    assert (request.user_id, request.reason, request.done_at) == ("maria", "Her own wish.", None)
    assert (user_of(event), event.subject_id) == ("maria", str(request.pk))
    assert "waits for the owner" in admin.get("/admin/audit/erasurerequest/").text


@pytest.mark.parametrize(
    ("address", "permission"), [(EXPORT, "export_person"), (ERASE, "add_erasurerequest")]
)
def test_export_and_erasure_require_permission(
    populated_a: Program, browser: Browser, address: str, permission: str
) -> None:
    looker = browser(populated_a.tenant, "view_scope", "view_message")
    assert looker.post(address, {"typed": "maria"}).status_code == 403
    page = looker.get(PERSON, {"user": "maria"}).text
    assert ("Export as JSON" in page, "Request erasure" in page) == (False, False)
    allowed = browser(populated_a.tenant, "view_scope", permission)
    assert allowed.post(address, {"typed": "maria"}).status_code in (200, 302)


def test_erasure_form_names_linked_accounts(
    populated_a: Program, admin: Client, send_message: SendMessage
) -> None:
    send_message(populated_a, "From Slack.", answered=False, user_id="U024")
    with tenant_scope(populated_a.tenant.id):
        channel_identities.link(
            channel_identities.identity_of("slack", "T1", "U024"), "maria", by="eva"
        )
    for named, other in (("maria", "U024"), ("U024", "maria")):
        page = admin.get(f"{PERSON}erase/?user={named}")
        assert page.context["linked"] == [other]
        assert "Linked, and erased with it" in page.text


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_page_of_an_erased_person_shows_the_receipt(
    populated_a: Program, browser: Browser, admin: Client, send_message: SendMessage
) -> None:
    admin.post(ERASE, {"typed": "maria", "reason": "Her own wish."})
    assert "erasure requested" in admin.get(PERSON, {"user": "maria"}).text
    with database.as_owner():
        assert jobs.ERASE.run_due() == 1
    # The typed id leads to the receipt, and is not stored again.
    assert admin.get(PEOPLE, {"q": "maria"})["Location"] == f"{PERSON}?user=maria"
    page = admin.get(PERSON, {"user": "maria"})
    assert "Her own wish." in page.text
    assert "The receipt" in page.text
    assert "Request erasure" not in page.text
    looker = browser(populated_a.tenant, "view_scope")
    assert "The receipt" not in looker.get(PERSON, {"user": "maria"}).text
    with tenant_scope(populated_a.tenant.id):
        name = pseudonym("maria")
        # The view did not store the id again, and earlier entries stay.
        assert not Person.objects.filter(user_id="maria").exists()
        assert AccessEvent.objects.filter(subject="person", action="view").count() >= 3
    listed = admin.get("/admin/audit/erasurerequest/").text
    assert name in listed
    send_message(populated_a, "I am back.", answered=False)
    page = admin.get(PERSON, {"user": "maria"})
    assert "The data below was stored after the erasure" in page.text
    assert "Request erasure" in page.text
