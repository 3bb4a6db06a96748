"""What an archive holds of a tenant, kind by kind, and how each is read from Postgres and put back.

A row is the JSON that Postgres makes of it, without the tenant and without the numbers that an
insert gives: those are another tenant's in another place. Every kind has its rows in one order, so
that equal memories make equal digests.
"""

from dataclasses import dataclass
from typing import Final

OF_USER = "(%(user)s::text IS NULL OR user_id = %(user)s)"
_OF_MESSAGES = f"IN (SELECT id FROM memory_message WHERE {OF_USER})"
# Of a person: threads that are theirs alone. Of a tenant: all.
OF_THREADS = "(%(user)s::text IS NULL OR thread_id = ANY(%(threads)s))"
THREADS_OF_ONE: Final = """
    SELECT thread_id FROM memory_message GROUP BY thread_id
    HAVING bool_and(user_id = %(user)s)
    UNION SELECT thread_id FROM checkpoints WHERE metadata ->> 'user_id' = %(user)s
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """Rows of one sort."""

    name: str
    table: str
    select: str
    """Gives one JSON object for each row, in order."""
    key: tuple[str, ...]
    """What makes a row the same row when it is imported again."""
    since: int = 1
    """The first format of archives that has it."""
    schema: str = ""
    """Where it is, if not in the tenant's own schema."""


def _rows(table: str, where: str, order: str, without: str = "") -> str:
    dropped = "ARRAY['tenant_id'" + "".join(f", '{name}'" for name in without.split()) + "]"
    return (
        f"SELECT to_jsonb(row) - {dropped}::text[] FROM {table} AS row"
        f" WHERE {where} ORDER BY {order}"
    )


MESSAGES: Final = Kind(
    "messages",
    "memory_message",
    _rows("memory_message", OF_USER, "number", "number"),
    ("id",),
)
# The index of words is put back as it was.
INDEX: Final = Kind(
    "index",
    "memory_indexedmessage",
    f"""
    SELECT (to_jsonb(indexed) - ARRAY['tenant_id', 'message_number', 'card']) || jsonb_build_object(
        'postings', (
            SELECT jsonb_agg(jsonb_build_array(h, w, own) ORDER BY h) FROM memory_posting
            WHERE scope_id = indexed.scope_id AND message_number = indexed.message_number
        )
    )
    FROM memory_indexedmessage AS indexed
    WHERE indexed.message_id {_OF_MESSAGES} ORDER BY indexed.message_number
    """,
    ("message_id",),
)
# A clear is of all messages up to one; which that is, is said by its id.
CLEARS: Final = Kind(
    "window_clears",
    "memory_windowclear",
    f"""
    SELECT jsonb_build_object(
        'agent_id', agent_id, 'user_id', user_id, 'created_at', created_at, 'up_to', (
            SELECT message.id FROM memory_message AS message
            WHERE message.agent_id = cleared.agent_id AND message.user_id = cleared.user_id
              AND message.number <= cleared.last_number
            ORDER BY message.number DESC LIMIT 1
        )
    )
    FROM memory_windowclear AS cleared WHERE {OF_USER} ORDER BY cleared.id
    """,
    ("agent_id", "user_id", "created_at"),
)
# In the order in which they are put back.
KINDS: Final = (
    Kind(
        "agents",
        "orchestrator_agent",
        _rows(
            "orchestrator_agent",
            "%(user)s::text IS NULL"
            " OR id IN (SELECT agent_id FROM memory_message WHERE user_id = %(user)s)"
            " OR id IN (SELECT agent_id FROM memory_memoryentry WHERE user_id = %(user)s)",
            "id",
        ),
        ("id",),
    ),
    MESSAGES,
    Kind(
        "embeddings",
        "memory_conversationembedding",
        _rows("memory_conversationembedding", OF_USER, "id", "quantized"),
        ("id",),
    ),
    Kind("scopes", "memory_scope", _rows("memory_scope", OF_USER, "id"), ("id",)),
    INDEX,
    Kind(
        "pending_embeddings",
        "memory_pendingembedding",
        _rows("memory_pendingembedding", f"message_id {_OF_MESSAGES}", "message_id"),
        ("message_id",),
    ),
    Kind(
        "pending_replies",
        "orchestrator_pendingreply",
        _rows(
            "orchestrator_pendingreply",
            f"message_id {_OF_MESSAGES}",
            "message_id",
            "kind sweep_at",  # archives have the latter as ring_at
        ),
        ("message_id",),
        schema="public",
    ),
    Kind(
        "tool_calls",
        "orchestrator_toolcall",
        _rows("orchestrator_toolcall", OF_USER, "id"),
        ("id",),
        since=2,
    ),
    Kind(
        "escalations",
        "orchestrator_escalation",
        _rows("orchestrator_escalation", OF_USER, "id"),
        ("id",),
        since=2,
    ),
    Kind(
        "identities",
        "orchestrator_channelidentity",
        _rows("orchestrator_channelidentity", OF_USER, "id"),
        ("id",),
        since=2,
    ),
    Kind(
        "recall_events",
        "memory_recallevent",
        _rows("memory_recallevent", OF_USER, "id"),
        ("id",),
    ),
    CLEARS,
    Kind(
        "conversation_items",
        "memory_conversationitem",
        _rows("memory_conversationitem", OF_USER, "number", "number"),
        ("id",),
        since=3,
    ),
    Kind(
        "facts",
        "memory_memoryentry",
        _rows("memory_memoryentry", OF_USER, "memory_id"),
        ("memory_id",),
    ),
    Kind(
        "checkpoints",
        "checkpoints",
        _rows("checkpoints", OF_THREADS, "thread_id, checkpoint_ns, checkpoint_id"),
        ("thread_id", "checkpoint_ns", "checkpoint_id"),
    ),
    Kind(
        "checkpoint_blobs",
        "checkpoint_blobs",
        _rows("checkpoint_blobs", OF_THREADS, "thread_id, checkpoint_ns, channel, version"),
        ("thread_id", "checkpoint_ns", "channel", "version"),
    ),
    Kind(
        "checkpoint_writes",
        "checkpoint_writes",
        _rows(
            "checkpoint_writes", OF_THREADS, "thread_id, checkpoint_ns, checkpoint_id, task_id, idx"
        ),
        ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx"),
    ),
)

# What is no memory, and stays: who may do what, who did, and rules.
NOT_EXPORTED: Final = frozenset(
    {
        "memory_memoryattribute",  # made again from the facts
        "memory_messageattribute",  # made again from the messages
        "memory_posting",  # with the index
        "api_apikey",
        "api_creation",
        "audit_accessevent",
        "audit_erasedid",
        "audit_erasurerequest",
        "audit_messageerasure",
        "audit_retentionrule",
        "orchestrator_answeroptions",  # there until there is an answer
        "orchestrator_moveofpast",  # work of the owner's process
        "channels_arrival",  # there for a moment
        "channels_delivery",  # what is shown elsewhere
        "channels_slackinstallation",
        "channels_slackuser",  # looked up again
        "auth_group",
        "auth_group_permissions",
        "auth_permission",
        "auth_user",
        "auth_user_groups",
        "auth_user_user_permissions",
        "checkpoint_migrations",
        "django_admin_log",
        "django_content_type",
        "django_migrations",
        "django_session",
    }
)
