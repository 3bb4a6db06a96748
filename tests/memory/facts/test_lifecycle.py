"""Extracted facts: proposed, confirmed, superseded, retracted, rejected, restored, rolled back."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import DatabaseError

from memory.exceptions import InvalidArgument, SlotTaken
from memory.facts import (
    Author,
    Quote,
    confirm,
    embed_facts,
    record_candidate,
    reject,
    restore,
    retract,
)
from memory.facts.lifecycle import Outcome, RecordedCandidate, roll_back
from memory.models import (
    AuthorKind,
    FactEvent,
    FactEvidence,
    FactKind,
    FactState,
    MemoryEntry,
    Message,
)
from tenants import transaction
from tenants.models import Tenant
from tests.memory.facts.keeping import AGENT, MEMORY, contents, fact

AddMessage = Callable[..., Message]

Record = Callable[..., RecordedCandidate]

pytestmark = pytest.mark.usefixtures("inside")

USER = "ada"
CURATOR = Author(AuthorKind.PERSON, "7", "curator")
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def run() -> Author:
    return Author(AuthorKind.RUN, str(uuid4()))


@pytest.fixture
def message(add_message: AddMessage, tenant_a: Tenant) -> Callable[..., Message]:
    """Return messages of the user, each a day after the previous one."""
    days = iter(range(100))

    def record(content: str, **values: Any) -> Message:
        values = {"agent_id": AGENT, "user_id": USER, **values}
        values.setdefault("created_at", START + timedelta(days=next(days)))
        return add_message(tenant_a.id, content, **values)

    return record


def quote(message: Message, words: str) -> Quote:
    start = message.content.index(words)
    return Quote(message, start, start + len(words))


def candidate(tenant: Tenant, city: str, **fields: Any) -> MemoryEntry:
    values = {
        "user_id": USER,
        "subject": "Ada",
        "slot": "home_city",
        "is_multi_valued": False,
        "value": city,
        "kind": FactKind.OBSERVED,
        **fields,
    }
    entry = fact(tenant, f"Ada lives in {city}.", **values)
    embed_facts([entry])
    return entry


@pytest.fixture
def record(tenant_a: Tenant, message: AddMessage, run: Author) -> Callable[..., RecordedCandidate]:
    """Record the user's statement of their city."""

    def record(
        city: str,
        *,
        review: str = "",
        author: Author = run,
        supersedes: UUID | None = None,
        **fields: Any,
    ) -> RecordedCandidate:
        evidence = fields.pop("message", None) or message(f"By the way, I live in {city} now.")
        run_id = UUID(author.id) if author.kind == AuthorKind.RUN else None
        entry = candidate(tenant_a, city, run_id=run_id, **fields)
        return record_candidate(
            entry, [quote(evidence, city)], author=author, review=review, supersedes=supersedes
        )

    return record


def contents_as_of(tenant: Tenant, at: datetime | None = None) -> list[str]:
    return contents(MEMORY.list_by_tenant(tenant.id, user_id=USER, at=at))


def events(recorded: RecordedCandidate) -> list[tuple[str, str]]:
    rows = FactEvent.objects.filter(memory_id=recorded.memory_id).order_by("number")
    return list(rows.values_list("action", "author_kind"))


def test_a_candidate_without_review_is_active_with_its_evidence(
    tenant_a: Tenant, record: Record
) -> None:
    recorded = record("Rome")

    assert recorded.outcome is Outcome.ACTIVE
    assert contents_as_of(tenant_a) == ["Ada lives in Rome."]
    (evidence,) = FactEvidence.objects.filter(memory_id=recorded.memory_id)
    assert evidence.quote == "Rome"
    assert evidence.message.content[evidence.start : evidence.end] == "Rome"
    assert MemoryEntry.objects.get(pk=recorded.memory_id).learned_at == START
    assert events(recorded) == [("propose", "run"), ("confirm", "system")]


def test_a_proposed_fact_is_used_after_its_confirmation_only(
    tenant_a: Tenant, record: Record
) -> None:
    recorded = record("Rome", review="health")

    assert recorded.outcome is Outcome.PROPOSED
    assert contents_as_of(tenant_a) == []
    assert contents_as_of(tenant_a, at=START + timedelta(days=1)) == []

    confirm(recorded.memory_id, author=CURATOR)
    assert contents_as_of(tenant_a) == ["Ada lives in Rome."]
    assert events(recorded) == [("propose", "run"), ("confirm", "person")]


def test_a_later_value_supersedes_the_one_of_a_single_valued_slot(
    tenant_a: Tenant, record: Record
) -> None:
    rome, oslo = record("Rome"), record("Oslo")

    assert oslo == RecordedCandidate(Outcome.ACTIVE, oslo.memory_id, superseded=rome.memory_id)
    assert contents_as_of(tenant_a) == ["Ada lives in Oslo."]
    assert contents_as_of(tenant_a, at=START + timedelta(hours=1)) == ["Ada lives in Rome."]
    assert events(rome)[-1] == ("supersede", "run")


def test_one_value_of_several_is_superseded_by_its_id(tenant_a: Tenant, record: Record) -> None:
    several = {"is_multi_valued": True}
    rome, bari = record("Rome", **several), record("Bari", **several)
    oslo = record("Oslo", supersedes=rome.memory_id, **several)

    assert oslo == RecordedCandidate(Outcome.ACTIVE, oslo.memory_id, superseded=rome.memory_id)
    assert contents_as_of(tenant_a) == ["Ada lives in Oslo.", "Ada lives in Bari."]
    assert events(rome)[-1] == ("supersede", "run")
    # It has ended: naming it again ends nothing.
    lima = record("Lima", supersedes=rome.memory_id, **several)
    assert lima.superseded is None
    retract(bari.memory_id, author=CURATOR)
    assert contents_as_of(tenant_a) == ["Ada lives in Lima.", "Ada lives in Oslo."]


def test_a_proposal_supersedes_the_named_value_when_it_is_confirmed(
    tenant_a: Tenant, record: Record, run: Author
) -> None:
    several = {"is_multi_valued": True}
    rome, _ = record("Rome", **several), record("Bari", **several)
    later = Author(AuthorKind.RUN, str(uuid4()))
    oslo = record("Oslo", author=later, review="doubt", supersedes=rome.memory_id, **several)
    assert contents_as_of(tenant_a) == ["Ada lives in Bari.", "Ada lives in Rome."]
    confirm(oslo.memory_id, author=CURATOR)
    assert contents_as_of(tenant_a) == ["Ada lives in Oslo.", "Ada lives in Bari."]
    # The run is undone as a unit, except facts confirmed by a person.
    assert roll_back(UUID(later.id), author=CURATOR)["restored"] == []
    assert restore(rome.memory_id, author=CURATOR).state == FactState.ACTIVE


@pytest.mark.parametrize(
    "fields",
    [{"subject": "Bo"}, {"slot": "birthplace"}, {"user_id": "bo"}, {"agent_id": None}],
    ids=["subject", "slot", "user", "agent"],
)
def test_a_fact_of_another_slot_or_scope_cannot_be_superseded(
    tenant_a: Tenant, record: Record, fields: dict[str, Any]
) -> None:
    rome = record("Rome", is_multi_valued=True)
    with pytest.raises(InvalidArgument, match="supersedes="):
        record("Oslo", supersedes=rome.memory_id, is_multi_valued=True, **fields)
    assert contents_as_of(tenant_a) == ["Ada lives in Rome."]


def test_an_older_statement_is_recorded_as_past(
    tenant_a: Tenant, record: Record, message: AddMessage
) -> None:
    record("Oslo")
    earlier = message("I live in Rome", created_at=START - timedelta(days=300))
    rome = record("Rome", message=earlier)

    assert rome.outcome is Outcome.PAST
    assert contents_as_of(tenant_a) == ["Ada lives in Oslo."]
    assert contents_as_of(tenant_a, at=START - timedelta(days=3)) == ["Ada lives in Rome."]


def test_same_candidate_again_changes_nothing(record: Record, message: AddMessage) -> None:
    evidence = message("I live in Rome")
    first = record("Rome", message=evidence)
    before = (MemoryEntry.objects.count(), FactEvidence.objects.count(), FactEvent.objects.count())

    again = record("Rome", message=evidence)

    assert again == RecordedCandidate(Outcome.UNCHANGED, first.memory_id)
    after = (MemoryEntry.objects.count(), FactEvidence.objects.count(), FactEvent.objects.count())
    assert after == before


def test_the_same_value_in_other_words_adds_evidence(tenant_a: Tenant, record: Record) -> None:
    first = record("Rome")
    again = record("rome")

    assert again == RecordedCandidate(Outcome.CONFIRMED, first.memory_id)
    assert FactEvidence.objects.filter(memory_id=first.memory_id).count() == 2
    assert contents_as_of(tenant_a) == ["Ada lives in Rome."]


def test_rejected_value_is_not_proposed_again_from_its_messages_or_copies(
    record: Record, message: AddMessage
) -> None:
    evidence = message("I live in Rome")
    recorded = record("Rome", message=evidence, review="conflict")
    reject(recorded.memory_id, author=CURATOR, reason="a joke")
    copy = message(evidence.content, created_at=evidence.created_at, thread_id="copy")

    assert record("Rome", message=evidence).outcome is Outcome.REJECTED_BEFORE
    assert record("Rome", message=copy).outcome is Outcome.REJECTED_BEFORE
    assert MemoryEntry.objects.get(pk=recorded.memory_id).state == FactState.REJECTED


def test_restated_rejected_value_is_proposed_for_review(tenant_a: Tenant, record: Record) -> None:
    recorded = record("Rome", review="conflict")
    reject(recorded.memory_id, author=CURATOR)

    again = record("Rome")

    assert again == RecordedCandidate(Outcome.PROPOSED, recorded.memory_id)
    assert MemoryEntry.objects.get(pk=recorded.memory_id).review_reason == "rejected before"
    assert contents_as_of(tenant_a) == []


def test_restated_fact_keeps_its_metadata(tenant_a: Tenant, record: Record) -> None:
    rome = record("Rome", metadata={"topic": "home"})
    record("Oslo")
    record("Rome")

    found = MEMORY.list_by_tenant(tenant_a.id, filters={"topic": "home"})
    assert [version.memory_id for version in found] == [rome.memory_id]
    assert [version.content for version in MEMORY.history(rome.memory_id, tenant_a.id)] == [
        "Ada lives in Rome.",
        "Ada lives in Rome.",
    ]


def test_a_model_only_proposes_another_value_than_a_persons(
    tenant_a: Tenant, record: Record
) -> None:
    rome = record("Rome", review="health")
    confirm(rome.memory_id, author=CURATOR)

    oslo = record("Oslo")

    assert oslo.outcome is Outcome.PROPOSED
    assert contents_as_of(tenant_a) == ["Ada lives in Rome."]
    proposed = MemoryEntry.objects.get(pk=oslo.memory_id)
    assert (proposed.review_reason, proposed.replaces) == ("conflict", rome.memory_id)

    confirm(oslo.memory_id, author=CURATOR)
    assert contents_as_of(tenant_a) == ["Ada lives in Oslo."]


def test_a_reason_for_review_is_recorded_once(record: Record) -> None:
    confirm(record("Rome", review="health").memory_id, author=CURATOR)
    oslo = record("Oslo", review="health, conflict")
    assert MemoryEntry.objects.get(pk=oslo.memory_id).review_reason == "health, conflict"


def test_a_retracted_fact_was_known_until_it_was_retracted(
    tenant_a: Tenant, record: Record
) -> None:
    rome = record("Rome")
    retract(rome.memory_id, author=CURATOR, reason="wrong person")

    assert contents_as_of(tenant_a) == []
    assert contents_as_of(tenant_a, at=START + timedelta(hours=1)) == ["Ada lives in Rome."]

    restore(rome.memory_id, author=CURATOR)
    assert contents_as_of(tenant_a) == ["Ada lives in Rome."]
    assert events(rome)[-2:] == [("retract", "person"), ("restore", "person")]


def test_a_superseded_fact_is_restored_after_its_successor_is_retracted(
    tenant_a: Tenant, record: Record
) -> None:
    rome, oslo = record("Rome"), record("Oslo")

    with pytest.raises(SlotTaken, match=str(oslo.memory_id)):
        restore(rome.memory_id, author=CURATOR)
    retract(oslo.memory_id, author=CURATOR)
    restore(rome.memory_id, author=CURATOR)

    assert contents_as_of(tenant_a) == ["Ada lives in Rome."]


def test_rollback_of_a_run_removes_its_facts_and_restores_superseded_ones(
    tenant_a: Tenant, record: Record
) -> None:
    first, second = (Author(AuthorKind.RUN, str(uuid4())) for _ in range(2))
    rome = record("Rome", author=first)
    record("Oslo", author=second)
    record("rome", author=second, slot="birthplace")

    found = roll_back(UUID(second.id), author=CURATOR)

    assert {name: len(facts) for name, facts in found.items()} == {
        "removed": 2,
        "restored": 1,
        "kept": 0,
    }
    assert contents_as_of(tenant_a) == ["Ada lives in Rome."]
    assert events(rome)[-1] == ("restore", "person")
    assert not FactEvidence.objects.filter(run_id=second.id).exists()


def test_a_stored_fact_no_longer_depends_on_its_evidence(tenant_a: Tenant, record: Record) -> None:
    recorded = record("Rome", review="all")
    program = Author(AuthorKind.PROGRAM, "1", "importer")
    stored = MEMORY.remember(fact(tenant_a, "Ada lives in Rome.", user_id=USER), author=program)

    assert (stored.memory_id, stored.created) == (recorded.memory_id, False)
    assert contents_as_of(tenant_a) == ["Ada lives in Rome."]
    assert MemoryEntry.objects.get(pk=recorded.memory_id).kind == FactKind.ENTERED


def test_a_candidate_without_evidence_is_refused(tenant_a: Tenant, run: Author) -> None:
    with pytest.raises(InvalidArgument, match="has quotes"):
        record_candidate(candidate(tenant_a, "Rome"), [], author=run)


def test_the_application_cannot_change_events(record: Record) -> None:
    recorded = record("Rome")
    events = FactEvent.objects.filter(memory_id=recorded.memory_id)

    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        events.update(reason="x")


def test_slots_of_other_subjects_are_not_superseded(tenant_a: Tenant, record: Record) -> None:
    record("Rome")
    oslo = record("Oslo", subject="Bo")

    assert oslo.superseded is None
    assert len(contents_as_of(tenant_a)) == 2


def test_rolling_a_run_back_keeps_facts_that_another_run_or_a_person_supports(
    tenant_a: Tenant, record: Record
) -> None:
    first, second = (Author(AuthorKind.RUN, str(uuid4())) for _ in range(2))
    rome = record("Rome", author=first)
    record("Rome", author=second)
    tea = record("Tea", author=second, slot="drink", review="all")
    confirm(tea.memory_id, author=CURATOR)

    found = roll_back(UUID(second.id), author=CURATOR)

    assert {name: len(facts) for name, facts in found.items()} == {
        "removed": 0,
        "restored": 0,
        "kept": 2,
    }
    assert FactEvidence.objects.filter(memory_id=rome.memory_id).count() == 1
    assert sorted(contents_as_of(tenant_a)) == ["Ada lives in Rome.", "Ada lives in Tea."]
