"""Long-term memory: the most similar texts of one agent and user, by each search strategy."""

from itertools import product
from uuid import UUID, uuid4

import numpy as np
import pytest

from memory import conf
from memory.embedding.embedder import model_version
from memory.exceptions import InvalidArgument
from memory.long_term import retrieve_relevant, store_embedding
from memory.models import ConversationEmbedding
from tenants.context import connection, tenant_scope
from tenants.exceptions import TenantPinned

AGENT = UUID("0a9e0000-0000-4000-8000-000000000001")
USER = "U024BE7LH"


def direction(*parts):
    """Return a vector with these first components, and zeros after them."""
    return [*parts, *[0.0] * (384 - len(parts))]


def at_similarity(similarity):
    """Return a unit vector with this cosine to ``direction(1)``."""
    return direction(similarity, (1 - similarity**2) ** 0.5)


def store(tenant_id, content, embedding, user=USER, agent=AGENT, role="user"):
    return store_embedding(tenant_id, agent, user, content, role, embedding)


@pytest.fixture(params=["exact", "hnsw"])
def way(request, monkeypatch):
    """Both strategies must find the same."""
    if request.param == "hnsw":
        monkeypatch.setattr(conf, "EXACT_ROWS", 0)
        monkeypatch.setattr(conf, "HNSW_EF_SEARCH", 1)
        monkeypatch.setattr(conf, "HNSW_CANDIDATES_PER_ROW", 1)
    return request.param


def test_results_are_ordered_by_similarity(tenant_a, way):
    for similarity in (0.8, 0.99, 0.5, 0.9, 0.76, 0.74):
        store(tenant_a.id, str(similarity), at_similarity(similarity))
    query = direction(1)
    assert retrieve_relevant(tenant_a.id, AGENT, USER, query) == ["0.99", "0.9", "0.8"]
    assert retrieve_relevant(tenant_a.id, AGENT, USER, query, top_k=10) == [
        "0.99",
        "0.9",
        "0.8",
        "0.76",
    ]
    assert retrieve_relevant(tenant_a.id, AGENT, USER, query, top_k=1, threshold=0.0) == ["0.99"]
    assert len(retrieve_relevant(tenant_a.id, AGENT, USER, query, 10, -1.0)) == 6


def test_threshold_is_inclusive(tenant_a, way):
    store(tenant_a.id, "just", at_similarity(0.75))
    store(tenant_a.id, "not quite", at_similarity(0.7499))
    store(tenant_a.id, "the same", direction(1))
    assert retrieve_relevant(tenant_a.id, AGENT, USER, direction(1)) == ["the same", "just"]
    assert retrieve_relevant(tenant_a.id, AGENT, USER, direction(1), threshold=1) == ["the same"]


def test_newer_text_is_first_at_equal_similarity(tenant_a, way):
    with tenant_scope(tenant_a.id), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO memory_conversationembedding"
            " (agent_id, user_id, content, role, embedding, created_at)"
            " SELECT %s, %s, day::text, 'user', %s, now() + day * interval '1 day'"
            " FROM unnest(ARRAY[3, 1, 2]) AS day",
            [AGENT, USER, str(direction(1))],
        )
    assert retrieve_relevant(tenant_a.id, AGENT, USER, direction(1)) == ["3", "2", "1"]


@pytest.mark.slow
def test_hnsw_results_equal_exact_results(tenant_a, monkeypatch):
    """Among nearer rows of other scopes, and with the settings for a large scope."""
    rng = np.random.default_rng(7)
    query = rng.normal(size=384)
    for user, distance, count in (("crowd", 0.2, 400), (USER, 1.0, 300)):
        with tenant_scope(tenant_a.id):
            ConversationEmbedding.objects.bulk_create(
                ConversationEmbedding(
                    agent_id=AGENT,
                    user_id=user,
                    content=f"{user} {number}",
                    role="user",
                    embedding=list(query + distance * rng.normal(size=384)),
                    embedding_model=model_version(),
                )
                for number in range(count)
            )
    exact = retrieve_relevant(tenant_a.id, AGENT, USER, query, 10, 0.0)
    assert len(exact) == 10
    assert all(content.startswith(USER) for content in exact)
    monkeypatch.setattr(conf, "EXACT_ROWS", 100)
    assert retrieve_relevant(tenant_a.id, AGENT, USER, query, 10, 0.0) == exact


def test_vectors_of_another_model_are_not_compared(tenant_a, way):
    store(tenant_a.id, "current", direction(1))
    with tenant_scope(tenant_a.id):
        for content, model in (("old", "all-MiniLM-L6-v1@0123456789ab"), ("not said", "")):
            ConversationEmbedding.objects.create(
                agent_id=AGENT,
                user_id=USER,
                content=content,
                role="user",
                embedding=direction(1),
                embedding_model=model,
            )
    assert set(retrieve_relevant(tenant_a.id, AGENT, USER, direction(1))) == {"current", "not said"}


# --- isolation ------------------------------------------------------------------------------------


def test_every_tenant_agent_and_user_has_memories_of_its_own(tenant_a, tenant_b, way):
    """The same ids, texts and vectors on both sides: neither finds the other's rows."""
    other_agent = uuid4()
    places = list(product((tenant_a.id, tenant_b.id), (AGENT, other_agent), (USER, "bob")))
    for tenant, agent, user in places:
        store(tenant, "the same text", direction(1), user=user, agent=agent)
        store(tenant, f"{tenant} {agent} {user}", at_similarity(0.9), user=user, agent=agent)
    for tenant, agent, user in places:
        assert retrieve_relevant(tenant, agent, user, direction(1), top_k=100, threshold=-1) == [
            "the same text",
            f"{tenant} {agent} {user}",
        ]


def test_a_call_for_another_tenant_is_refused_inside_of_a_scope(tenant_a, tenant_b):
    store(tenant_a.id, "of a", direction(1))
    assert len(retrieve_relevant(str(tenant_a.id), AGENT, USER, direction(1))) == 1
    with tenant_scope(tenant_b.id):
        assert retrieve_relevant(tenant_b.id, AGENT, USER, direction(1)) == []
        with pytest.raises(TenantPinned):
            retrieve_relevant(tenant_a.id, AGENT, USER, direction(1))
        with pytest.raises(TenantPinned):
            store(tenant_a.id, "forged", direction(1))
    with tenant_scope(tenant_a.id):
        assert ConversationEmbedding.objects.count() == 1


# --- what is stored -------------------------------------------------------------------------------


def test_stored_row_has_all_fields(tenant_a):
    row_id = store(tenant_a.id, "Guten Tag 😀", direction(0.25, -0.5), role="assistant")
    with tenant_scope(tenant_a.id):
        row = ConversationEmbedding.objects.get()
    assert (row.id, row.tenant_id, row.agent_id, row.user_id) == (row_id, tenant_a.id, AGENT, USER)
    assert (row.content, row.role, row.piece, row.embedding_model) == (
        "Guten Tag 😀",
        "assistant",
        0,
        model_version(),
    )
    assert list(row.embedding) == direction(0.25, -0.5)
    assert row.created_at is not None


def test_the_columns_of_the_contract_are_enough(tenant_a):
    with tenant_scope(tenant_a.id), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO memory_conversationembedding"
            " (tenant_id, agent_id, user_id, content, role, embedding)"
            " VALUES (%s, %s, %s, 'by hand', 'user', %s) RETURNING id, created_at",
            [tenant_a.id, AGENT, USER, str(direction(1))],
        )
        assert None not in cursor.fetchone()
    assert retrieve_relevant(tenant_a.id, AGENT, USER, direction(1)) == ["by hand"]


VECTORS = [
    ([0.0] * 384, "has no direction: its squared length is 0.0"),
    ([1.0] * 383, "has 383 dimensions, not 384"),
    ([], "has 0 dimensions, not 384|is not a flat list"),
    ([*[1.0] * 383, float("nan")], r"\[383\]=nan is not a finite number"),
    ([[1.0] * 384], r"is not a flat list of numbers: shape \(1, 384\)"),
    ([1.0, [2.0]], "is not a flat list of numbers"),
]


@pytest.mark.parametrize(("vector", "named"), VECTORS)
def test_invalid_vector_is_refused(tenant_a, vector, named):
    with pytest.raises(InvalidArgument, match=f"^embedding.*({named})"):
        store(tenant_a.id, "text", vector)
    with pytest.raises(InvalidArgument, match=f"^query_embedding.*({named})"):
        retrieve_relevant(tenant_a.id, AGENT, USER, vector)
    with tenant_scope(tenant_a.id):
        assert ConversationEmbedding.objects.count() == 0


@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda v: np.array(v, dtype=np.float32)])
def test_vectors_of_any_sequence_type_are_accepted(tenant_a, kind):
    store(tenant_a.id, "text", kind(direction(1)))
    assert retrieve_relevant(tenant_a.id, AGENT, USER, kind(direction(1))) == ["text"]


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"agent_id": "helper"}, "agent_id='helper' is not a UUID"),
        ({"user_id": None}, "user_id=None is not text"),
        ({"content": "a\x00"}, r"content=.* holds U\+0000 \(NUL\) at 1"),
        ({"content": " \n"}, "content=' .n' is blank"),
        ({"role": "robot"}, "role='robot' is not one of user, assistant"),
    ],
)
def test_unstorable_values_are_named(tenant_a, values, named):
    good = {
        "agent_id": AGENT,
        "user_id": USER,
        "content": "text",
        "role": "user",
        "embedding": direction(1),
    }
    with pytest.raises(InvalidArgument, match=named):
        store_embedding(tenant_a.id, **{**good, **values})


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"top_k": 0}, "top_k=0 is not a whole number of at least 1"),
        ({"threshold": 1.01}, "threshold=1.01 is not a number from -1 to 1"),
        ({"threshold": float("nan")}, "threshold=nan is not a number"),
    ],
)
def test_invalid_search_is_refused_by_argument(tenant_a, values, named):
    with pytest.raises(InvalidArgument, match=named):
        retrieve_relevant(tenant_a.id, AGENT, USER, direction(1), **values)
