"""Recall finds earlier messages of the user only, and none for unanswerable questions."""

from collections import OrderedDict
from contextlib import nullcontext
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from memory.conf import RESPONDER_MARK
from memory.embedding.embedder import embed
from memory.exceptions import InvalidArgument
from memory.recall import Hit, recall, service as recall_module
from memory.recall.policy import RecallPolicy
from memory.recall.queries import Strategy
from tenants import transaction
from tenants.context import connection, tenant_scope
from tenants.exceptions import UnknownTenant
from tenants.models import Tenant
from tests.memory.messages import AGENT, START, add_messages
from tests.memory.recalled import SMALL_TALK, UNGATED, contents, statements


def test_finds_the_message_that_answers(tenant_a: Tenant) -> None:
    add_messages(tenant_a, *SMALL_TALK)
    answer, *_ = add_messages(
        tenant_a, "My sister Zoe moved to Lisbon last spring.", thread="other"
    )
    result = recall(tenant_a.id, AGENT, "ann", "Which city did my sister move to?")
    assert result.hits[0].message_id == answer.id
    assert result.hits[0].content == "My sister Zoe moved to Lisbon last spring."
    assert result.hits[0].probability >= RecallPolicy().open_at
    assert result.abstained is False


def test_empty_scope_returns_nothing(tenant_a: Tenant) -> None:
    result = recall(tenant_a.id, AGENT, "nobody", "Where does my sister live?")
    assert (result.hits, result.cut, result.abstained) == ((), (), True)


def test_agents_users_and_tenants_do_not_share_memories(tenant_a: Tenant, tenant_b: Tenant) -> None:
    secret = "My sister Zoe moved to Lisbon."
    add_messages(tenant_a, secret)
    for tenant, agent, user in (
        (tenant_a, AGENT, "bob"),
        (tenant_a, uuid4(), "ann"),
        (tenant_b, AGENT, "ann"),
    ):
        result = recall(tenant.id, agent, user, secret, policy=UNGATED)
        assert (result.hits, result.cut) == ((), ())
    assert contents(recall(tenant_a.id, AGENT, "ann", secret, policy=UNGATED)) == [secret]


def test_a_message_is_one_result_by_its_best_sentence(tenant_a: Tenant) -> None:
    text = "I like tea a lot. My sister lives in Lisbon. The weather is quite mild."
    add_messages(tenant_a, text)
    assert contents(recall(tenant_a.id, AGENT, "ann", "my sister in Lisbon")) == [text]


def test_the_end_of_a_long_message_is_found(tenant_a: Tenant) -> None:
    add_messages(tenant_a, *SMALL_TALK)
    text = " ".join([*SMALL_TALK * 20, "My sister Zoe moved to Lisbon last spring."])
    message, *_ = add_messages(tenant_a, text, thread="long")
    result = recall(tenant_a.id, AGENT, "ann", "Which city did my sister move to?")
    assert result.hits[0].message_id == message.id


def test_scripts_without_spaces_are_found(tenant_a: Tenant) -> None:
    add_messages(tenant_a, *SMALL_TALK, "我姐姐去年搬到了里斯本。", "今天午饭我喝了汤。")
    result = recall(tenant_a.id, AGENT, "ann", "姐姐搬到了哪个城市？", policy=UNGATED)
    assert result.hits[0].content == "我姐姐去年搬到了里斯本。"


@pytest.mark.parametrize(
    "query",
    [
        "", " ", "😀", "the of and", "\x00", "a\x00b", "\ud800", "%s %(x)s '; --", "word " * 20_000,
        "漢" * 5000,
    ],
    ids=lambda query: ascii(query[:10]),
)  # fmt: skip
def test_any_text_can_be_asked(
    tenant_a: Tenant, query: str, request: pytest.FixtureRequest
) -> None:
    add_messages(tenant_a, "I like tea.", "😀", "…")
    assert len(recall(tenant_a.id, AGENT, "ann", query, policy=UNGATED).hits) == 3


def test_excluded_memories_are_omitted_and_reported(tenant_a: Tenant) -> None:
    first, second = add_messages(
        tenant_a, "My sister Zoe lives in Lisbon.", "My sister is called Zoe."
    )
    result = recall(
        tenant_a.id, AGENT, "ann", "my sister Zoe in Lisbon", policy=UNGATED, exclude=[first.id]
    )
    assert [hit.message_id for hit in result.hits] == [second.id]
    assert [(cut.message_id, cut.reason) for cut in result.cut] == [(first.id, "excluded")]


def test_as_of_a_moment_later_turns_are_unknown(tenant_a: Tenant) -> None:
    first, second, _ = add_messages(
        tenant_a, "My sister lives in Rome.", "My sister moved to Lisbon.", "My sister is in Oslo."
    )
    result = recall(
        tenant_a.id, AGENT, "ann", "my sister", policy=UNGATED, at=START + timedelta(minutes=1)
    )
    assert {hit.message_id for hit in result.hits} == {first.id, second.id}


def test_at_most_top_k_and_the_rest_is_cut(tenant_a: Tenant) -> None:
    add_messages(
        tenant_a, *(f"I bought {number} red apples at the market." for number in range(40))
    )
    policy = RecallPolicy(gate=False, top_k=3)
    result = recall(tenant_a.id, AGENT, "ann", "red apples", policy=policy)
    assert len(result.hits) == 3
    assert [cut.reason for cut in result.cut] == ["over top_k"] * recall_module.MAX_CUT


def test_each_text_is_returned_once_and_lists_of_the_built_in_responder_never(
    tenant_a: Tenant,
) -> None:
    said = "My sister lives in Lisbon."
    add_messages(tenant_a, *[said] * 4, "My sister is called Zoe.", "I like tea.")
    add_messages(tenant_a, f"- {said} {RESPONDER_MARK}", role="assistant", thread="other")
    policy = RecallPolicy(gate=False, top_k=3)
    result = recall(tenant_a.id, AGENT, "ann", "Where does my sister live?", policy=policy)
    assert sorted(hit.content for hit in result.hits) == sorted(
        [said, "My sister is called Zoe.", "I like tea."]
    )
    assert [cut.reason for cut in result.cut].count("same text") == 3
    more = recall(tenant_a.id, AGENT, "ann", "Where does my sister live?", policy=UNGATED)
    assert [cut.reason for cut in more.cut] == ["same text"] * 4


def test_neighbours_are_returned_and_not_counted(tenant_a: Tenant) -> None:
    add_messages(
        tenant_a,
        "One before.",
        "Just before.",
        "My sister lives in Lisbon.",
        "Just after.",
        "Later.",
    )
    add_messages(tenant_a, "In another thread.", thread="other")
    policy = RecallPolicy(gate=False, top_k=1, neighbours=1)
    (hit,) = recall(tenant_a.id, AGENT, "ann", "sister in Lisbon", policy=policy).hits
    assert [turn.content for turn in hit.neighbours] == ["Just before.", "Just after."]
    assert isinstance(hit.neighbours[0].message_id, UUID)
    assert hit.neighbours[0].created_at == START + timedelta(minutes=1)


def test_my_refers_to_the_user_and_your_to_the_agent(tenant_a: Tenant) -> None:
    add_messages(tenant_a, *SMALL_TALK)
    add_messages(tenant_a, "The favourite colour is green.", thread="colours")
    add_messages(
        tenant_a, "The favourite colour is blue.", thread="shades", role="assistant", name="Nova"
    )

    def ask(query: str) -> Hit:
        return recall(tenant_a.id, AGENT, "ann", query, policy=UNGATED).hits[0]

    assert ask("What is my favourite colour?").role == "user"
    assert ask("What is your favourite colour?").role == "assistant"
    assert ask("What is Nova's favourite colour?").name == "Nova"


def test_vectors_alone_rank_by_cosine(tenant_a: Tenant) -> None:
    add_messages(tenant_a, *SMALL_TALK, "My sister Zoe moved to Lisbon.")
    policy = RecallPolicy(mode="vector", gate=False)
    result = recall(tenant_a.id, AGENT, "ann", "Where does my sister live?", policy=policy)
    assert result.hits[0].content == "My sister Zoe moved to Lisbon."
    assert [hit.score for hit in result.hits] == pytest.approx(
        [hit.channels["cosine"] for hit in result.hits]
    )


def test_recall_with_a_given_vector_is_five_statements(tenant_a: Tenant) -> None:
    add_messages(tenant_a, *SMALL_TALK)
    (vector,) = embed(["soup for lunch"])
    for at in (None, START + timedelta(hours=1)):
        with CaptureQueriesContext(connections[tenant_a.server]) as queries:
            result = recall(
                tenant_a.id, AGENT, "ann", "soup for lunch", at=at,
                exclude=[uuid4()], query_embedding=vector,
            )  # fmt: skip
        assert len(statements(queries)) == 5
        assert contents(result)[0] == SMALL_TALK[0]


@pytest.mark.parametrize("neighbours", [0, 2])
def test_neighbours_are_fetched_for_hits_only(tenant_a: Tenant, neighbours: int) -> None:
    policy = RecallPolicy(neighbours=neighbours)
    add_messages(tenant_a, *SMALL_TALK)
    (vector,) = embed(["soup for lunch"])
    with CaptureQueriesContext(connections[tenant_a.server]) as queries:
        result = recall(
            tenant_a.id, AGENT, "ann", "soup for lunch", policy=policy, query_embedding=vector
        )
    assert len(statements(queries)) == 5
    assert result.hits[0].content == SMALL_TALK[0]
    around = [turn.content for turn in result.hits[0].neighbours]
    assert around == list(SMALL_TALK[1:3])[:neighbours]


def test_unembedded_message_is_found_by_its_words(
    tenant_a: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_messages(tenant_a, *SMALL_TALK, "My sister Zoe moved to Lisbon.")
    monkeypatch.setattr(recall_module, "model_version", lambda: "another@000000000000")
    result = recall(tenant_a.id, AGENT, "ann", "Where did Zoe move to?", policy=UNGATED)
    assert result.hits[0].content == "My sister Zoe moved to Lisbon."
    assert result.hits[0].channels["cosine"] == 0
    assert result.embedding_model == "another@000000000000"


def test_messages_that_wait_to_be_indexed_are_not_there_yet(tenant_a: Tenant) -> None:
    add_messages(tenant_a, "My sister Zoe moved to Lisbon.", index=False)
    assert recall(tenant_a.id, AGENT, "ann", "Zoe in Lisbon", policy=UNGATED).hits == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"agent_id": "x"}, "agent_id='x' is not a UUID"),
        ({"user_id": ""}, "user_id='' is empty"),
        ({"query": None}, "query=None is not text"),
        ({"at": datetime(2024, 1, 1)}, "at=2024-01-01 00:00:00 has no time zone"),  # noqa: DTZ001
        ({"exclude": ["x"]}, "exclude='x' is not a UUID"),
        ({"query_embedding": [1.0]}, "query_embedding has 1 dimensions, not 384"),
    ],
)
def test_wrong_arguments_are_named(
    tenant_a: Tenant, arguments: dict[str, object], message: str
) -> None:
    call = {"agent_id": AGENT, "user_id": "ann", "query": "tea", **arguments}
    with pytest.raises(InvalidArgument, match="^" + message.replace("(", r"\(")):
        recall(tenant_a.id, **call)


@pytest.mark.usefixtures("db")
def test_an_unknown_tenant_is_an_error() -> None:
    with pytest.raises(UnknownTenant):
        recall(uuid4(), AGENT, "ann", "tea")


@pytest.mark.parametrize("strategy", list(Strategy))
@pytest.mark.parametrize("fails", [False, True])
def test_a_recall_leaves_no_setting_in_the_callers_transaction(
    tenant_a: Tenant, monkeypatch: pytest.MonkeyPatch, strategy: Strategy, fails: bool
) -> None:
    """Neither its own nor the caller's setting is changed, by any strategy and after an error."""

    class ReadInThisWay(OrderedDict[Any, Strategy]):
        def get(self, key: Any, default: Any = None) -> Strategy:
            return strategy

    def fail(*args: object, **options: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(recall_module, "_large_scopes", ReadInThisWay())
    if fails:
        monkeypatch.setattr(recall_module.scoring, "rank", fail)
    add_messages(tenant_a, *SMALL_TALK)
    with tenant_scope(tenant_a.id), transaction.atomic(), connection.cursor() as cursor:
        connection.set_local({"hnsw.ef_search": "77", "enable_sort": "off"})
        with pytest.raises(ZeroDivisionError) if fails else nullcontext():
            recall(tenant_a.id, AGENT, "ann", "Which city did my sister move to?", policy=UNGATED)
        names = (
            *("hnsw.iterative_scan", "plan_cache_mode", "hnsw.ef_search"),
            *("enable_sort", "enable_seqscan"),
        )
        settings = [f"current_setting('{name}')" for name in names]
        cursor.execute(f"SELECT {', '.join(settings)}")
        assert cursor.fetchone() == ("off", "auto", "77", "off", "on")
