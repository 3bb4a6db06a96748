"""What is written for a message when it is indexed: its vectors."""

from collections.abc import Sequence

from memory.embeddings import get_embedder
from memory.models import ConversationEmbedding, Message


def index_messages(messages: Sequence[Message]) -> None:
    """Write the embeddings of messages of the current tenant, inside the caller's transaction."""
    embedder = get_embedder()
    vectors = embedder.encode([message.content for message in messages])
    ConversationEmbedding.objects.bulk_create(
        ConversationEmbedding(
            agent_id=message.agent_id,
            user_id=message.user_id,
            message=message,
            content=message.content,
            role=message.role,
            embedding=vector,
            embedding_model=embedder.version,
        )
        for message, vector in zip(messages, vectors, strict=True)
    )
