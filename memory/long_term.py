"""Long-term conversation memory: past messages, found by cosine similarity."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np

from memory import arguments, conf, indexing
from memory.embedding.embedder import model_version
from memory.fields import nearest
from memory.models import ConversationEmbedding, Message, recall
from tenants import context, transaction
from tenants.audit.people import hold_people

Vector = Sequence[float] | np.ndarray[Any, Any]


def retrieve_relevant(
    tenant_id: UUID | str,
    agent_id: UUID | str,
    user_id: str,
    query_embedding: Vector,
    top_k: int = conf.TOP_K,
    threshold: float = conf.THRESHOLD,
) -> list[str]:
    """Return texts with at least this cosine similarity to the query, most similar first.

    Only memories of this agent about this user, and only vectors of the current model. Of equally
    similar texts the newer comes first. Up to `EXACT_ROWS` rows every vector is compared; above,
    HNSW finds the candidates.

    The default threshold is the contract's; almost nothing reaches it with this model: of the
    evidence for questions on LoCoMo .001 as whole messages and .09 as the pipeline's pieces
    (benchmarks/recall/threshold.py). `memory.recall.recall` needs no threshold and finds more.

    Args:
        query_embedding: 384 finite numbers, not all zero; any length.
        top_k: the maximum number of texts, at least 1.
        threshold: from -1 to 1. 90 % of the evidence reach .11 as whole messages, and .42 as the
            pipeline's pieces.

    Raises:
        InvalidArgument: a value is invalid; the message names it.
        InvalidTenantId, UnknownTenant: there is no such tenant.
    """
    agent = arguments.uuid_argument("agent_id", agent_id)
    user = arguments.id_argument("user_id", user_id)
    vector = arguments.vector_argument("query_embedding", query_embedding)
    arguments.count_argument("top_k", top_k)
    least = arguments.similarity_argument("threshold", threshold) - conf.DISTANCE_TOLERANCE
    with context.known_tenant(tenant_id) as tenant:
        # A row without a model belongs to the current one. The condition on the tenant repeats
        # those of schema and policy: each is sufficient.
        rows = ConversationEmbedding.objects.of(tenant, agent, user).filter(
            embedding_model__in=(model_version(), "")
        )
        found = nearest(rows.only("content"), vector, top_k)
    return [row.content for row in found if row.score >= least]


aretrieve_relevant = context.asynchronous(retrieve_relevant)


def store_embedding(
    tenant_id: UUID | str,
    agent_id: UUID | str,
    user_id: str,
    content: str,
    role: str,
    embedding: Vector,
) -> UUID:
    """Store a text with its vector as a message that agents can recall.

    The text is a message of the channel "stored", without a reply and outside of the window, so
    that recall, export and erasure treat it like any other. Other messages are embedded by the
    queue. The row stores the version of the current model, so the vector must come from that model
    (`memory.embeddings.embed`).

    Args:
        content: the text, not blank.
        role: the speaker, "user" or "assistant".
        embedding: 384 finite numbers, not all zero; any length.

    Returns:
        The id of the row of ConversationEmbedding.

    Raises:
        InvalidArgument: a value cannot be stored; the message names it.
        InvalidTenantId, UnknownTenant: there is no such tenant.
    """
    fields: dict[str, Any] = {
        "agent_id": arguments.uuid_argument("agent_id", agent_id),
        "user_id": arguments.new_id_argument("user_id", user_id),
        "content": arguments.content_argument(content),
        "role": arguments.role_argument(role),
    }
    # One thread for each agent and user; its id contains neither.
    thread_id = f"stored{recall.scope_number(fields['agent_id'], user_id):+020d}"
    message = Message(thread_id=thread_id, channel=conf.STORED_CHANNEL, **fields)
    row = ConversationEmbedding(
        message=message,
        embedding=arguments.vector_argument("embedding", embedding),
        embedding_model=model_version(),
        **fields,
    )
    with context.known_tenant(tenant_id), transaction.atomic():
        hold_people([message.user_id], agent_ids=[message.agent_id])
        message.save(force_insert=True)
        row.save(force_insert=True)
        indexing.index_words([message])
    return row.id


astore_embedding = context.asynchronous(store_embedding)
