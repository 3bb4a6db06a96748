"""Ids of erased users after the erasure: the access log has pseudonyms instead."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.privacy.erasure import carry_out
from memory.models import Message
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import AccessEvent, Action, ActorKind, ErasedId
from tenants.audit.pseudonyms import pseudonym
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests import database

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

EVA = Actor(ActorKind.PERSON, "1", "eva")


@pytest.fixture
def erased(tenant_a: Tenant, send_message: Callable[..., Message]) -> None:
    """Maria Lopez and U07:maria% were erased; bob was not, and "agent" never existed."""
    for user_id in ("Maria Lopez", "U07:maria%", "bob"):
        send_message("Hello.", user_id, f"of {user_id}")
    with database.as_owner(), tenant_scope(tenant_a.id):
        for user_id in ("Maria Lopez", "U07:maria%", "agent"):
            carry_out(request_erasure(user_id, by=EVA))


def written(**given: Any) -> AccessEvent:
    record_access(
        given.pop("action", Action.SEARCH), given.pop("subject", "facts"), by=EVA, **given
    )
    return AccessEvent.objects.latest("pk")


def test_columns_parameters_and_texts_have_pseudonyms(tenant_a: Tenant, erased: None) -> None:
    with tenant_scope(tenant_a.id):
        maria, slack = pseudonym("Maria Lopez"), pseudonym("U07:maria%")
        assert {row.digest for row in ErasedId.objects.all()} == {maria, slack}
        event = written(
            user_id="U07:maria%",
            subject_id="slack/U07:maria%/7",
            request_id="Maria Lopez",
            asked={"q": "Maria Lopez", "user": "U07:maria%", "Maria Lopez": "1"},
            address="user=U07%3Amaria%25&q=Maria+Lopez&o=1",
            query='Did Maria Lopez, or "U07:maria%" and bob, ask?',
            agent="Maria Lopez",
        )
        assert (event.user_id, event.subject_id) == (slack, f"slack/{slack}/7")
        assert event.request_id == maria
        assert event.detail == {
            "asked": {"q": maria, "user": slack, maria: "1"},
            "address": f"user={slack}&q={maria}&o=1",
            "query": f'Did {maria}, or "{slack}" and bob, ask?',
            "agent": "Maria Lopez",
        }
        assert written(subject="people", subject_id="U07:maria%").subject_id == slack


def test_ids_of_others_and_words_stay(tenant_a: Tenant, erased: None) -> None:
    detail = {
        "query": "Which agent spoke to maria, lopez or Maria  Lopez?",
        "text": 'a\\"b\n\tc \u2028 ü 😀',
        "limit": 3,
        "earlier": {"user_id": "Maria Lopez 2"},
    }
    with tenant_scope(tenant_a.id):
        event = written(user_id="Maria Lopez 2", subject_id=uuid4(), **detail)
        assert (event.user_id, event.detail) == ("Maria Lopez 2", detail)
        assert written(user_id="agent").user_id == "agent"


def test_returning_person_is_found_and_erased_again(
    tenant_a: Tenant, erased: None, send_message: Callable[..., Message]
) -> None:
    send_message("I am back.", "Maria Lopez", "again")
    with tenant_scope(tenant_a.id):
        assert written(user_id="Maria Lopez", query="Where is she?").user_id.startswith("erased:")
    with database.as_owner(), tenant_scope(tenant_a.id):
        receipt = carry_out(request_erasure("Maria Lopez", by=EVA)).receipt
        assert receipt is not None
        assert receipt["found"]
        event = AccessEvent.objects.filter(subject="facts").latest("pk")
        assert event.detail == {"query": "(erased)"}


@pytest.mark.xfail(strict=True, reason="S1")
@pytest.mark.usefixtures("files_left_alone")
def test_no_text_of_the_log_names_or_quotes_an_erased_person(
    tenant_a: Tenant, send_message: Callable[..., Message]
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
