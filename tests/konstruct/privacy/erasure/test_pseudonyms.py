"""The access log names people by random pseudonyms, and has no texts."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.privacy.erasure import carry_out
from tenants.audit.access_log import MAX_PEOPLE, Actor, record_access
from tenants.audit.changes import row_state
from tenants.audit.models import AccessEvent, Action, ActorKind, about_people
from tenants.audit.people import Person, hold_people
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests import database
from tests.konstruct.conftest import SendMessage

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

EVA = Actor(ActorKind.PERSON, "1", "eva")


def written(**given: Any) -> AccessEvent:
    record_access(
        given.pop("action", Action.SEARCH), given.pop("subject", "facts"), by=EVA, **given
    )
    return AccessEvent.objects.latest("pk")


def test_an_entry_has_numbers_ids_of_rows_and_words_of_the_code(tenant_a: Tenant) -> None:
    row_id, at = uuid4(), datetime(2026, 1, 1, tzinfo=UTC)
    with tenant_scope(tenant_a.id):
        event = written(
            subject_id="maria", request_id="maria", query="Maria", asked={"q": "Maria"},
            thread_id="of maria", named={"Maria": ["Maria"]}, found=3, facts=[row_id, "Maria"],
            ok=True, score=0.5, since=at, nothing=None, format="csv", action_of=Action.VIEW,
        )  # fmt: skip
        assert (event.subject_id, event.request_id, event.pseudonym) == ("", "", None)
        assert event.detail == {
            "found": 3, "facts": [str(row_id)], "ok": True,
            "score": 0.5, "since": at.isoformat(), "format": "csv", "action_of": "view",
        }  # fmt: skip
        event = written(subject_id=row_id, request_id=str(row_id), user_id="unknown")
        assert (event.subject_id, event.request_id) == (str(row_id), str(row_id))
        assert event.pseudonym is None


def test_a_change_of_a_text_has_only_the_name_of_the_field(
    tenant_a: Tenant, send_message: SendMessage
) -> None:
    message = send_message("Hello.", "maria")
    before = row_state(message)
    message.content, message.number = "Maria", 7
    with tenant_scope(tenant_a.id):
        event = written(before=before, after=row_state(message))
        assert event.detail["withheld"] == ["content"]
        assert event.detail["after"] == {"number": 7}
        assert "maria" not in str(written(after=row_state(message)).detail).lower()


def test_people_are_named_by_pseudonyms_at_most_200_in_an_entry(tenant_a: Tenant) -> None:
    users = [f"user {number:03}" for number in range(MAX_PEOPLE + 5)]
    with tenant_scope(tenant_a.id):
        hold_people(users)
        people = dict(Person.objects.values_list("user_id", "pseudonym"))
        event = written(user_id=users[0], people=[*users, users[0]])
        assert event.pseudonym == people[users[0]]
        assert set(event.pseudonyms or ()) == {people[user] for user in users[:MAX_PEOPLE]}
        assert event.people_count == MAX_PEOPLE + 5
        assert not AccessEvent.objects.filter(about_people(users[-1])).exists()
        assert AccessEvent.objects.get(about_people(users[1])) == event


def test_a_returning_person_has_another_pseudonym(
    tenant_a: Tenant, send_message: SendMessage
) -> None:
    send_message("Hello.", "maria")
    with database.as_owner(), tenant_scope(tenant_a.id):
        first = written(user_id="maria")
        carry_out(request_erasure("maria", by=EVA))
        assert not AccessEvent.objects.filter(about_people("maria")).exists()
        assert AccessEvent.objects.get(pk=first.pk).pseudonym == first.pseudonym
    send_message("I am back.", "maria")
    with tenant_scope(tenant_a.id):
        second = written(user_id="maria")
        assert second.pseudonym not in (None, first.pseudonym)
        assert [*AccessEvent.objects.filter(about_people("maria"))] == [second]


@pytest.mark.usefixtures("files_left_alone")
def test_no_text_of_the_log_names_or_quotes_an_erased_person(
    tenant_a: Tenant, send_message: SendMessage
) -> None:
    send_message("I have a walnut allergy.", "u07-luz", "of luz", name="Luz Vega")
    with tenant_scope(tenant_a.id):
        queries = ("Has U07-LUZ paid?", "Has Luz Vega paid?", "a walnut allergy")
        events = [written(query=query) for query in queries]
    with database.as_owner(), tenant_scope(tenant_a.id):
        carry_out(request_erasure("u07-luz", by=EVA))
        for event in events:
            event.refresh_from_db()
    text = str([event.detail for event in events]).casefold()
    assert [word for word in ("u07", "luz", "vega", "walnut") if word in text] == []
