"""Facts with evidence: they raise their messages in the ranking, and replace them."""

from collections import OrderedDict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from memory.context import ContextManager, LongTermMemory
from memory.embedding.embedder import embed
from memory.facts import Author, Quote, embed_facts, record_candidate, reject, retract
from memory.models import AuthorKind, FactKind, MemoryEntry, Message
from memory.recall import FactHit, RecallResult, recall, service as recall_module
from memory.recall.policy import DEFAULT_POLICY, NO_WEIGHTS, RecallPolicy, RecallWeights
from memory.recall.queries import LIMITS
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.memory.messages import AGENT, START, add_messages
from tests.memory.recalled import SMALL_TALK, UNGATED, contents, statements

STATEMENT = "Finally got the keys, boxes everywhere. Bergen is wet!"
FACT = "Ann moved into a flat in Bergen."
QUESTION = "Where is Ann's new flat?"
CURATOR = Author(AuthorKind.PERSON, "7", "curator")


@pytest.fixture
def statement(tenant_a: Tenant) -> Message:
    """A statement that hardly resembles the question, among others."""
    add_messages(tenant_a, *SMALL_TALK)
    (message,) = add_messages(tenant_a, STATEMENT, start=START + timedelta(days=3), name="Ann")
    return message


def remember(
    tenant: Tenant, *messages: Message, content: str = FACT, review: str = "", **fields: Any
) -> UUID:
    """Record a fact with whole messages as evidence."""
    with tenant_scope(tenant.id):
        entry = MemoryEntry(
            tenant_id=tenant.id,
            agent_id=AGENT,
            user_id=messages[0].user_id,
            content=content,
            **{"kind": FactKind.OBSERVED, **fields},
        )
        embed_facts([entry])
        quotes = [Quote(message, 0, len(message.content)) for message in messages]
        run = Author(AuthorKind.RUN, str(uuid4()))
        return record_candidate(entry, quotes, author=run, review=review).memory_id


def ask(tenant: Tenant, question: str = QUESTION, **given: Any) -> RecallResult:
    return recall(tenant.id, AGENT, "ann", question, **{"policy": UNGATED, **given})


def lines(tenant: Tenant, question: str = QUESTION, policy: RecallPolicy = UNGATED) -> list[str]:
    return gathered(tenant, question, policy).lines


def gathered(tenant: Tenant, question: str = QUESTION, policy: RecallPolicy = UNGATED) -> Any:
    return ContextManager().gather(
        tenant.id, "x", question, agent_id=AGENT, user_id="ann", session_messages=[], policy=policy
    )


def test_a_message_is_found_by_the_fact_that_rests_on_it(
    tenant_a: Tenant, statement: Message
) -> None:
    before = ask(tenant_a)
    memory_id = remember(tenant_a, statement)
    after = ask(tenant_a)

    assert before.facts == ()
    assert after.hits[0].message_id == statement.id
    gain = after.hits[0].score - next(h.score for h in before.hits if h.message_id == statement.id)
    assert gain == pytest.approx(1.5 * after.hits[0].channels["fact"])
    (fact,) = after.facts
    assert fact == FactHit(
        memory_id=memory_id,
        content=FACT,
        score=after.hits[0].score,
        probability=after.hits[0].probability,
        similarity=after.hits[0].channels["fact"],
        quote=STATEMENT,
        said_at=statement.created_at,
        message_ids=(statement.id,),
    )
    assert [hit for hit in after.ranking if isinstance(hit, FactHit)] == [fact]
    assert statement.id not in {getattr(hit, "message_id", None) for hit in after.ranking}


def test_without_facts_on_messages_a_recall_is_the_same(
    tenant_a: Tenant, statement: Message
) -> None:
    before = ask(tenant_a)
    entered = {"tenant_id": tenant_a.id, "agent_id": AGENT, "content": FACT}
    LongTermMemory().store(MemoryEntry(**entered, user_id="ann"))
    LongTermMemory().store(MemoryEntry(**entered))
    after = ask(tenant_a)

    times = {"milliseconds": 0.0}
    assert replace(after, **times) == replace(before, **times)


def test_a_fact_opens_the_gate(tenant_a: Tenant, statement: Message) -> None:
    before = ask(tenant_a, policy=DEFAULT_POLICY)
    remember(tenant_a, statement)
    after = ask(tenant_a, policy=DEFAULT_POLICY)

    assert after.hits[0].message_id == statement.id
    assert after.hits[0].gate_value > 2 * max(
        (h.gate_value for h in (*before.hits, *before.cut) if h.message_id == statement.id),
        default=0,
    )


def test_facts_cost_no_further_statement(tenant_a: Tenant, statement: Message) -> None:
    remember(tenant_a, statement)
    (vector,) = embed([QUESTION])
    for at in (None, datetime.now(UTC)):
        with CaptureQueriesContext(connections[tenant_a.server]) as queries:
            assert len(ask(tenant_a, query_embedding=vector, at=at).facts) == 1
        assert len(statements(queries)) == 5


@pytest.mark.parametrize("scanned", [5000, 0])
def test_the_message_of_a_near_fact_is_a_candidate_of_a_large_scope(
    tenant_a: Tenant, statement: Message, monkeypatch: pytest.MonkeyPatch, scanned: int
) -> None:
    remember(tenant_a, statement)
    monkeypatch.setattr(recall_module, "_large_scopes", OrderedDict())
    limits = {"whole_scope": 0, "scanned_at_least": scanned, "scanned_to_root": 0}
    for name, limit in {**limits, "candidates": 1, "candidate_pieces": 1}.items():
        monkeypatch.setitem(LIMITS, name, limit)

    result = ask(tenant_a)

    assert result.hits[0].message_id == statement.id
    assert [fact.content for fact in result.facts] == [FACT]


def test_a_fact_replaces_all_its_messages_in_a_prompt(tenant_a: Tenant, statement: Message) -> None:
    (again,) = add_messages(
        tenant_a, "The flat in Bergen has a balcony.", start=START + timedelta(days=5)
    )
    memory_id = remember(tenant_a, statement, again)
    gathered_facts = gathered(tenant_a)

    fact = next(line for line in gathered_facts.lines if "Fact:" in line)
    assert gathered_facts.lines.index(fact) == 0
    (hit,) = gathered_facts.recalled.facts
    assert set(hit.message_ids) == {statement.id, again.id}
    assert fact == f'- [{hit.said_at:%A, %Y-%m-%d %H:%M}] Fact: {FACT} ("{hit.quote}")'
    assert not [line for line in gathered_facts.lines if line.endswith((STATEMENT, again.content))]

    trace = ContextManager().fit(gathered_facts, "").trace()
    (fact_given,) = trace["facts"]
    assert (fact_given["memory_id"], fact_given["reason"]) == (str(memory_id), "")
    assert (fact_given["quote"], fact_given["said_at"]) == (hit.quote, hit.said_at.isoformat())
    assert set(fact_given["message_ids"]) == {str(statement.id), str(again.id)}
    reasons = {hit["message_id"]: hit["reason"] for hit in trace["cut"]}
    assert reasons[str(statement.id)] == reasons[str(again.id)] == "given as a fact"
    assert fact in trace["injected"]
    assert fact in trace["prompt"]["sections"][1]["messages"][0]["content"]


def test_messages_of_the_window_bring_no_fact(tenant_a: Tenant, statement: Message) -> None:
    remember(tenant_a, statement)
    assert ask(tenant_a, exclude=[statement.id]).facts == ()


def test_only_active_and_valid_facts_are_recalled(tenant_a: Tenant, statement: Message) -> None:
    proposed = remember(tenant_a, statement, review="health")
    assert ask(tenant_a).facts == ()
    with tenant_scope(tenant_a.id):
        reject(proposed, author=CURATOR)
    remember(
        tenant_a, statement, content="Ann's flat was in Oslo.", valid_to=START + timedelta(days=4)
    )
    former = remember(tenant_a, statement, content="Ann's flat is in Rome.")
    assert [fact.memory_id for fact in ask(tenant_a).facts] == [former]
    with tenant_scope(tenant_a.id):
        retract(former, author=CURATOR)
    assert ask(tenant_a).facts == ()


def test_a_superseded_fact_is_recalled_as_of_its_time_only(tenant_a: Tenant) -> None:
    slot = {"subject": "Ann", "slot": "home", "is_multi_valued": False}
    then, _, now = (START + timedelta(days=days) for days in (1, 2, 5))
    (rome,) = add_messages(tenant_a, "I took a flat, in Rome it is.", start=START)
    (oslo,) = add_messages(
        tenant_a, "I took a flat, in Oslo it is.", start=START + timedelta(days=3)
    )
    remember(tenant_a, rome, content="Ann's flat is in Rome.", value="Rome", **slot)
    remember(tenant_a, oslo, content="Ann's flat is in Oslo.", value="Oslo", **slot)

    def facts_as_of(at: datetime | None = None) -> list[str]:
        return [fact.content for fact in ask(tenant_a, "Where is Ann's flat?", at=at).facts]

    assert facts_as_of() == ["Ann's flat is in Oslo."]
    assert facts_as_of(now) == ["Ann's flat is in Oslo."]
    assert facts_as_of(then) == ["Ann's flat is in Rome."]
    assert facts_as_of(START - timedelta(days=1)) == []


def test_a_fact_that_has_ended_is_a_sign_of_its_messages_alone(tenant_a: Tenant) -> None:
    slot = {"subject": "Ann", "slot": "home", "is_multi_valued": False}
    add_messages(tenant_a, *SMALL_TALK)
    (rome,) = add_messages(tenant_a, "Finally got the keys, boxes everywhere.", start=START)
    (oslo,) = add_messages(tenant_a, "Off to the north for good.", start=START + timedelta(days=3))
    first = remember(tenant_a, rome, content="Ann's flat is in Rome.", value="Rome", **slot)
    remember(tenant_a, oslo, content="Ann's flat is in Oslo.", value="Oslo", **slot)
    with tenant_scope(tenant_a.id):
        assert MemoryEntry.objects.get(pk=first).state == "superseded"

    found = ask(tenant_a, "Was Ann's flat in Rome?")

    assert found.hits[0].message_id == rome.id
    assert found.hits[0].channels["fact"] > 0.5
    assert [fact.content for fact in found.facts] == ["Ann's flat is in Oslo."]
    assert rome.content in lines(tenant_a, "Was Ann's flat in Rome?")[0]
    with tenant_scope(tenant_a.id):
        retract(first, author=CURATOR)
    corrected = ask(tenant_a, "Was Ann's flat in Rome?")
    assert not [
        hit for hit in corrected.hits if hit.message_id == rome.id and "fact" in hit.channels
    ]


@pytest.mark.parametrize(
    "policy",
    [
        RecallPolicy(mode="vector", gate=False),
        RecallPolicy(gate=False, weights=RecallWeights(fact=0)),
        RecallPolicy(gate=False, weights=NO_WEIGHTS),
    ],
    ids=["vector", "no weight", "no weights"],
)
def test_a_policy_without_facts_ranks_by_messages_alone(
    tenant_a: Tenant, statement: Message, policy: RecallPolicy
) -> None:
    before = contents(ask(tenant_a, policy=policy))
    remember(tenant_a, statement)
    after = ask(tenant_a, policy=policy)
    assert (contents(after), after.facts) == (before, ())
    assert f"- Fact: {FACT}" in lines(tenant_a, policy=policy)
