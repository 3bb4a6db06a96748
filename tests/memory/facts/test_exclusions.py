"""Messages that state a corrected fact are not recalled until the correction is undone."""

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch
from uuid import UUID, uuid4

import pytest

from memory import facts
from memory.context import ContextManager
from memory.conversations.short_term import UserWindow, append_turns, get_recent_messages
from memory.conversations.transcript import record_message
from memory.conversations.window_store import Turn
from memory.indexing import index_messages
from memory.models import AuthorKind, FactKind, MemoryEntry, Message, RecallExclusion
from memory.recall import recall
from tenants import transaction
from tenants.audit.models import AccessEvent
from tenants.models import Tenant
from tests.memory.messages import AGENT, START, add_messages
from tests.memory.recall_traces import fact_of, store_trace
from tests.memory.recalled import UNGATED, contents

pytestmark = pytest.mark.usefixtures("inside")

USER = "ann"
QUESTION = "In which city do I live?"
STATEMENT = "I live in Rome. My dog is called Rex and barks at night."
OTHER = "Rome was hot when we went there on holiday."
REPLY = "Rome is a lovely city to live in."
UNRELATED = "Here is a recipe for lentil soup."
CURATOR = facts.Author(AuthorKind.PERSON, "7", "curator")
RUN = facts.Author(AuthorKind.RUN, str(uuid4()))


@pytest.fixture
def statement(tenant_a: Tenant) -> Message:
    """A message about the user's home, and another one with the same word."""
    message, _ = add_messages(tenant_a, STATEMENT, OTHER)
    return message


def remember(tenant: Tenant, message: Message, city: str = "Rome", *, review: str = "") -> UUID:
    """Record the fact that a message states."""
    entry = MemoryEntry(
        tenant_id=tenant.id,
        agent_id=AGENT,
        user_id=USER,
        content=f"Ann lives in {city}.",
        subject="Ann",
        slot="home_city",
        is_multi_valued=False,
        value=city,
        kind=FactKind.OBSERVED,
    )
    facts.embed_facts([entry])
    words = f"I live in {city}"
    start = message.content.index(words)
    quote = facts.Quote(message, start, start + len(words))
    return facts.record_candidate(entry, [quote], author=RUN, review=review).memory_id


def reply(tenant: Tenant, text: str, *, fact: UUID | None = None, to: Message | None = None) -> Any:
    """Record a reply of the agent, with the trace of a prompt that had the fact."""
    message = record_message(
        tenant_id=tenant.id,
        agent_id=AGENT,
        user_id=USER,
        thread_id="t",
        channel="rest",
        role="assistant",
        content=text,
        created_at=START + timedelta(hours=1, minutes=Message.objects.count()),
        in_reply_to=to and to.id,
    )[0]
    with transaction.atomic():
        index_messages([message])
    if fact is not None:
        store_trace(AGENT, USER, reply_id=message.pk, sources=[fact], facts=[fact_of(fact)])
    return message


def recalled(tenant: Tenant, question: str = QUESTION, **given: Any) -> list[str]:
    return contents(recall(tenant.id, AGENT, USER, question, policy=UNGATED, **given))


def prompt(tenant: Tenant) -> str:
    gathered = ContextManager().gather(
        tenant.id, "x", QUESTION, agent_id=AGENT, user_id=USER, session_messages=[], policy=UNGATED
    )
    return "\n".join(gathered.lines)


def test_a_corrected_fact_takes_its_evidence_and_the_replies_with_it_out_of_recall(
    tenant_a: Tenant, statement: Message
) -> None:
    rome = remember(tenant_a, statement)
    reply(tenant_a, REPLY, fact=rome)
    reply(tenant_a, UNRELATED, fact=rome)
    reply(tenant_a, "They say that Rome was not built in a day.")
    assert "I live in Rome" in prompt(tenant_a)

    facts.LongTermMemory().update(rome, tenant_a.id, content="Ann lives in Oslo.", author=CURATOR)

    rest = "…. My dog is called Rex and barks at night."
    assert set(recalled(tenant_a)) == {
        *(rest, OTHER, UNRELATED),
        "They say that Rome was not built in a day.",
    }
    assert "Fact: Ann lives in Oslo." in prompt(tenant_a)
    assert "I live in Rome" not in prompt(tenant_a)


def test_result_lists_exclusions_with_reasons(tenant_a: Tenant, statement: Message) -> None:
    rome = remember(tenant_a, statement)
    answer = reply(tenant_a, REPLY, fact=rome)
    facts.retract(rome, author=CURATOR, reason="a mistake")

    result = recall(tenant_a.id, AGENT, USER, QUESTION, policy=UNGATED)

    (cut,) = [hit for hit in result.cut if hit.message_id == answer.id]
    assert cut.reason == "excluded: corrected fact"
    assert (cut.excluded[0].memory_id, cut.excluded[0].reason) == (rome, "a mistake")
    (hit,) = [hit for hit in result.hits if hit.message_id == statement.id]
    assert hit.content == "…. My dog is called Rex and barks at night."
    (words,) = hit.excluded
    assert STATEMENT[words.start : words.end] == "I live in Rome"
    trace = result.trace()
    assert trace["cut"][0]["excluded"][0]["memory_id"] == str(rome)
    assert {hit["message_id"] for hit in trace["hits"] if hit["excluded"]} == {str(statement.id)}


def test_sentences_with_excluded_words_count_no_longer(
    tenant_a: Tenant, statement: Message
) -> None:
    def cosine() -> float:
        result = recall(tenant_a.id, AGENT, USER, QUESTION, policy=UNGATED)
        return next(h.channels["cosine"] for h in result.hits if h.message_id == statement.id)

    before = cosine()
    facts.exclude_from_recall(statement, author=CURATOR, start=10, end=14)
    assert cosine() < before - 0.1
    facts.include_again(statement, author=CURATOR)
    assert cosine() == before


def test_restored_fact_is_recalled_with_its_evidence(tenant_a: Tenant, statement: Message) -> None:
    rome = remember(tenant_a, statement)
    reply(tenant_a, REPLY, fact=rome)
    before, prompt_before = recalled(tenant_a), prompt(tenant_a)

    facts.retract(rome, author=CURATOR)
    assert REPLY not in recalled(tenant_a)
    assert "Rome." not in prompt(tenant_a)

    facts.restore(rome, author=CURATOR)
    assert (recalled(tenant_a), prompt(tenant_a)) == (before, prompt_before)
    assert RecallExclusion.objects.count() == 0


def test_a_new_statement_of_the_user_is_no_correction(tenant_a: Tenant, statement: Message) -> None:
    remember(tenant_a, statement)
    moved, *_ = add_messages(tenant_a, "I live in Oslo now.", start=START + timedelta(days=9))
    remember(tenant_a, moved, "Oslo")

    assert RecallExclusion.objects.count() == 0
    assert STATEMENT in recalled(tenant_a)


def test_a_value_that_a_person_entered_is_a_correction(
    tenant_a: Tenant, statement: Message
) -> None:
    rome = remember(tenant_a, statement)
    moved, *_ = add_messages(tenant_a, "I live in Oslo now.", start=START + timedelta(days=9))
    oslo = remember(tenant_a, moved, "Oslo", review="conflict")
    facts.LongTermMemory().update(oslo, tenant_a.id, content="Ann lives in Bergen.", author=CURATOR)

    facts.confirm(oslo, author=CURATOR)

    assert MemoryEntry.objects.get(pk=rome).state == "superseded"
    excluded = RecallExclusion.objects.filter(message=statement).get()
    assert (excluded.memory_id, excluded.author_name) == (rome, "curator")
    # The corrected fact does not link to the message that stated it.
    found = recall(tenant_a.id, AGENT, USER, QUESTION, policy=UNGATED)
    assert [
        hit for hit in found.hits if hit.message_id == moved.id and "fact" in hit.channels
    ] == []
    assert not [
        hit for hit in found.hits if hit.message_id == statement.id and "fact" in hit.channels
    ]


def test_a_reply_to_the_evidence_that_repeats_the_value_is_excluded(
    tenant_a: Tenant, statement: Message
) -> None:
    answer = reply(tenant_a, REPLY, to=statement)
    facts.retract(remember(tenant_a, statement), author=CURATOR)
    assert RecallExclusion.objects.filter(message=answer, start=None).count() == 1


def test_recall_as_of_an_earlier_time_includes_facts_corrected_later(
    tenant_a: Tenant, statement: Message
) -> None:
    rome = remember(tenant_a, statement)
    then = datetime.now(UTC)
    facts.LongTermMemory().update(rome, tenant_a.id, content="Ann lives in Oslo.", author=CURATOR)

    result = recall(tenant_a.id, AGENT, USER, QUESTION, policy=UNGATED, at=then)

    assert [fact.content for fact in result.facts] == ["Ann lives in Rome."]
    assert result.facts[0].memory_id == rome
    assert STATEMENT in contents(result)
    assert recall(tenant_a.id, AGENT, USER, QUESTION, policy=UNGATED).facts == ()


def window(tenant: Tenant) -> list[str]:
    return [turn["content"] for turn in get_recent_messages(tenant.id, AGENT, USER)]


@pytest.mark.django_db(transaction=True)  # windows are deleted after the commit
def test_excluded_message_and_its_echoes_leave_recall_and_window_until_it_is_included(
    tenant_a: Tenant, statement: Message
) -> None:
    reply(tenant_a, "I see.", to=statement)
    echo = reply(tenant_a, "As you live in Rome, how is your dog Rex at night?")
    store_trace(AGENT, USER, reply_id=echo.pk, sources=[statement.pk])
    reply(tenant_a, "Rome is where many people live, with a dog called Rex, at night.")
    before, shown = set(recalled(tenant_a)), window(tenant_a)
    assert {STATEMENT, echo.content, "I see."} <= {*shown} & before

    exclusion = facts.exclude_from_recall(statement, author=CURATOR, reason="private")
    assert RecallExclusion.objects.get(message=echo).echo_of == exclusion.pk
    gone = {STATEMENT, echo.content}
    assert set(recalled(tenant_a)) == before - gone
    assert window(tenant_a) == [text for text in shown if text not in gone]
    # Of an echo that is excluded as well, its own exclusion stays.
    facts.exclude_from_recall(echo, author=CURATOR)

    facts.include_again(statement, author=CURATOR, exclusion_id=exclusion.pk)
    assert set(recalled(tenant_a)) == before - {echo.content}
    assert facts.include_again(echo, author=CURATOR) == 1
    assert (set(recalled(tenant_a)), window(tenant_a)) == (before, shown)


def test_excluded_turn_of_a_window_is_not_rebuilt_by_each_append(
    tenant_a: Tenant, statement: Message
) -> None:
    for message in (statement, reply(tenant_a, REPLY, to=statement)):
        facts.exclude_from_recall(message, author=CURATOR)
    assert window(tenant_a) == []
    question = add_messages(tenant_a, "Which recipe?", start=START + timedelta(hours=2))[0]
    answer = reply(tenant_a, UNRELATED, to=question)
    with patch.object(UserWindow, "rebuild") as rebuild:
        turns = [Turn.of(question), Turn.of(answer)]
        append_turns(tenant_a.id, AGENT, USER, turns)
        assert window(tenant_a) == [question.content, UNRELATED]
    rebuild.assert_not_called()


def test_message_is_excluded_and_included_manually(tenant_a: Tenant, statement: Message) -> None:
    exclusion = facts.exclude_from_recall(statement, author=CURATOR, reason="private")
    assert facts.exclude_from_recall(statement, author=CURATOR).pk == exclusion.pk
    assert STATEMENT not in recalled(tenant_a)
    cut = recall(tenant_a.id, AGENT, USER, QUESTION, policy=UNGATED).cut
    assert [hit.reason for hit in cut if hit.message_id == statement.id] == ["excluded: message"]

    assert facts.include_again(statement, author=CURATOR, exclusion_id=uuid4()) == 0
    assert facts.include_again(statement, author=CURATOR) == 1
    assert STATEMENT in recalled(tenant_a)
    events = AccessEvent.objects.filter(subject="recall exclusions").order_by("created_at")
    assert list(events.values_list("action", "actor", "subject_id")) == [
        ("create", "curator", str(statement.id)),
        ("delete", "curator", str(statement.id)),
    ]


def test_a_fact_that_rests_on_excluded_messages_alone_is_not_recalled(
    tenant_a: Tenant, statement: Message
) -> None:
    remember(tenant_a, statement)
    facts.exclude_from_recall(statement, author=CURATOR)
    assert recall(tenant_a.id, AGENT, USER, QUESTION, policy=UNGATED).facts == ()
    assert "Rome." not in prompt(tenant_a)
