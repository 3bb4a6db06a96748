"""Names of people go with their messages; the access log holds pseudonyms instead."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.orchestrator.models import Agent, HistoryMerge
from konstruct.privacy import jobs
from konstruct.privacy.archive.exporting import export_memory
from konstruct.privacy.archive.importing import import_memory
from konstruct.privacy.erasure.erasing import carry_out
from konstruct.privacy.erasure.messages import apply_rules, erase_from_prompts
from memory.conversations.transcript import ImportedTurn, import_turns, record_message
from memory.models import Message, PersonName
from tenants.audit.access_log import MAX_PEOPLE, Actor, record_access
from tenants.audit.changes import row_state
from tenants.audit.models import AccessEvent, Action, ActorKind, RetentionRule, about_people
from tenants.audit.people import Person, hold_people
from tenants.context import connection, fetch_all, fetch_value, tenant_scope
from tenants.models import Tenant
from tests import database
from tests.konstruct.conftest import SendMessage
from tests.konstruct.privacy.erasure.test_erasure import everything
from tests.memory.recall_traces import prompt_of, store_trace, trace_of

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

EVA = Actor(ActorKind.PERSON, "1", "eva")


@pytest.fixture
def named_message(tenant_a: Tenant, send_message: SendMessage) -> Message:
    """Create Maria under two names, and Bob. Return the message with her first name."""
    first = send_message("Hello.", "maria", "t1", name="Mariella")
    send_message("Hello again.", "maria", "t2", name="Maria")
    send_message("Hello.", "bob", "t3", name="Bob")
    return first


def kept(tenant: Tenant) -> list[tuple[str, str]]:
    with tenant_scope(tenant.id):
        found = PersonName.objects.order_by("user_id", "name").values_list("user_id", "name")
        return list(found)


def test_names_follow_a_link(
    tenant_a: Tenant, named_message: Message, send_message: SendMessage
) -> None:
    send_message("From Slack.", "U1", "dm", name="mia")
    send_message("From Slack.", "U1", "dm", name="Maria")
    with tenant_scope(tenant_a.id):
        identity = channel_identities.identity_of("slack", "T1", "U1")
        channel_identities.link(identity, "maria", by="eva")
    with database.as_owner(), tenant_scope(tenant_a.id):
        jobs.merge_histories(HistoryMerge.objects.get(), min_age=timedelta(0))
    assert kept(tenant_a) == [
        ("bob", "Bob"), ("maria", "Maria"), ("maria", "Mariella"), ("maria", "mia"),
    ]  # fmt: skip


def test_erased_name_leaves_no_data(
    tenant_a: Tenant, named_message: Message, files_left_alone: None, owner: None
) -> None:
    record_access(Action.SEARCH, "people", by=EVA, query="Mariella")
    assert carry_out(request_erasure("maria", by=EVA)).done_at is not None
    assert kept(tenant_a) == [("bob", "Bob")]
    assert "mariella" not in everything(tenant_a).lower()


def test_name_is_deleted_with_messages_past_retention(
    tenant_a: Tenant, agent: Agent, named_message: Message, owner: None
) -> None:
    long_ago = timezone.now() - timedelta(days=90)
    turn = {"agent_id": agent.pk, "thread_id": "t", "role": "user", "created_at": long_ago}
    old = [
        ImportedTurn(external_id=name, user_id="maria", content="Hi", name=name, **turn)
        for name in ("Maria", "Marie")
    ]
    import_turns(tenant_a.id, old)
    assert ("maria", "Marie") in kept(tenant_a)
    RetentionRule.objects.create(days=30)
    assert [*apply_rules().values()] == [2]
    assert kept(tenant_a) == [("bob", "Bob"), ("maria", "Maria"), ("maria", "Mariella")]


def test_an_import_of_an_archive_brings_names(
    tenant_a: Tenant, tenant_b: Tenant, named_message: Message, tmp_path: Path
) -> None:
    export_memory(tenant_a, tmp_path / "a.sqlite")
    with database.as_owner():
        import_memory(tenant_b, tmp_path / "a.sqlite")
    assert kept(tenant_b) == kept(tenant_a) != []


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
    message.content, message.number = "Maria", -7
    with tenant_scope(tenant_a.id):
        event = written(before=before, after=row_state(message))
        assert event.detail["withheld"] == ["content"]
        assert event.detail["after"] == {"number": -7}
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


PROMPTS = 10_000


def test_one_indexed_statement_erases_a_message_from_the_prompts_of_a_tenant(
    tenant_a: Tenant,
) -> None:
    said: Any = {"tenant_id": tenant_a.id, "agent_id": uuid4(), "thread_id": "t", "channel": "rest"}
    message, _ = record_message(**said, user_id="maria", role="user", content="ok")
    with tenant_scope(tenant_a.id):
        turn = {"role": "user", "content": "ok\n\nA program says: ok."}
        events = [
            store_trace(said["agent_id"], user, sources=[message.pk], prompt=prompt_of(turn))
            for user in ("maria", "theo")
        ]
    with database.as_owner(), tenant_scope(tenant_a.id):
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO memory_recallevent (agent_id, user_id, packed, sources, abstained,"
                " embedding_model, milliseconds) SELECT gen_random_uuid(), 'user ' || n %% 1000,"
                " packed, ARRAY[gen_random_uuid()], abstained, embedding_model, milliseconds"
                " FROM memory_recallevent, generate_series(1, %s) AS n WHERE id = %s",
                [PROMPTS, events[0].pk],
            )
            cursor.execute(
                "INSERT INTO memory_promptsource (event_id, source_id)"
                " SELECT id, gen_random_uuid() FROM memory_recallevent"
            )
            cursor.execute("ANALYZE memory_recallevent, memory_promptsource")
        with CaptureQueriesContext(connection) as queries:
            assert erase_from_prompts([message]) == 2
        (query,) = queries
        plan = "\n".join(line for (line,) in fetch_all(f"EXPLAIN {query['sql']}"))
        assert "Seq Scan on memory_recallevent" not in plan
        assert "Seq Scan on memory_promptsource" not in plan
        assert fetch_value("SELECT count(*) FROM memory_recallevent") == PROMPTS + 2
        for event in events:
            event.refresh_from_db()
            (erased,) = trace_of(event)["prompt"]["sections"][0]["messages"]
            assert erased["content"] == "[erased]\n\n[erased]"
