"""What is done with every table in which a user can be found, when their past moves to another.

A table with a user's id that is in neither list is found by a test.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Move:
    """One statement, and the table whose rows it moves."""

    table: str
    statement: str


# A message and its reply go together: what belongs to so many questions at a time.
NEXT: Final = """
    WITH asked AS (
        SELECT DISTINCT coalesce(in_reply_to_id, id) AS id FROM memory_message
        WHERE agent_id = %(agent)s AND user_id = %(from)s LIMIT %(limit)s
    )
    SELECT message.id, message.number FROM memory_message AS message JOIN asked
      ON asked.id = message.id OR asked.id = message.in_reply_to_id
    WHERE message.agent_id = %(agent)s AND message.user_id = %(from)s
    ORDER BY message.number
"""
AGENTS: Final = """
    SELECT agent_id FROM memory_message WHERE user_id = %(from)s
    UNION SELECT agent_id FROM memory_scope WHERE user_id = %(from)s
    UNION SELECT agent_id FROM memory_windowclear WHERE user_id = %(from)s
    UNION SELECT agent_id FROM memory_conversationembedding WHERE user_id = %(from)s
"""
# Who writes embeddings at this moment is waited for: then what they wrote is moved too.
LOCK: Final = "SELECT 1 FROM memory_pendingembedding WHERE message_id = ANY(%(ids)s) FOR UPDATE"

_THEIRS = "agent_id = %(agent)s AND user_id = %(from)s"

# In one transaction for each batch of messages of one agent.
OF_MESSAGES: Final = (
    Move(
        "memory_scope",
        "INSERT INTO memory_scope (id, agent_id, user_id)"
        " SELECT %(to_scope)s, agent_id, %(to)s FROM memory_scope WHERE id = %(from_scope)s"
        " ON CONFLICT (agent_id, user_id) DO NOTHING",
    ),
    Move(
        "memory_message",
        # Imported twice, under both ids: both stay.
        "UPDATE memory_message AS moved SET user_id = %(to)s, external_id = CASE WHEN EXISTS ("
        " SELECT FROM memory_message AS other WHERE other.agent_id = moved.agent_id"
        " AND other.user_id = %(to)s AND other.external_id = moved.external_id"
        ") THEN left(external_id, 200) || '#' || id ELSE external_id END WHERE id = ANY(%(ids)s)",
    ),
    Move(
        "memory_conversationembedding",
        "UPDATE memory_conversationembedding SET user_id = %(to)s WHERE message_id = ANY(%(ids)s)",
    ),
    Move(
        "memory_posting",
        "UPDATE memory_posting SET scope_id = %(to_scope)s"
        " WHERE scope_id = %(from_scope)s AND message_number = ANY(%(numbers)s)",
    ),
    Move(
        "memory_indexedmessage",
        "UPDATE memory_indexedmessage SET scope_id = %(to_scope)s"
        " WHERE message_number = ANY(%(numbers)s)",
    ),
    Move(
        "memory_recallevent",
        "UPDATE memory_recallevent SET user_id = %(to)s WHERE reply_id = ANY(%(ids)s)",
    ),
    Move(
        "orchestrator_toolcall",
        "UPDATE orchestrator_toolcall SET user_id = %(to)s WHERE message_id = ANY(%(ids)s)",
    ),
)

# In one transaction for each agent, once its messages are moved.
OF_AGENT: Final = (
    Move(
        "memory_conversationembedding",
        f"UPDATE memory_conversationembedding SET user_id = %(to)s WHERE {_THEIRS}",
    ),
    Move("memory_recallevent", f"UPDATE memory_recallevent SET user_id = %(to)s WHERE {_THEIRS}"),
    Move(
        "memory_windowclear",
        # The last clear is the one that counts, and must not give back what another cleared.
        "WITH ours AS ("
        f" UPDATE memory_windowclear SET user_id = %(to)s WHERE {_THEIRS}"
        " RETURNING last_number, created_at"
        "), theirs AS ("
        " SELECT last_number, created_at FROM memory_windowclear"
        " WHERE agent_id = %(agent)s AND user_id = %(to)s"
        ") INSERT INTO memory_windowclear (agent_id, user_id, last_number, created_at)"
        " SELECT %(agent)s, %(to)s, max(last_number), max(created_at)"
        " FROM (SELECT * FROM ours UNION ALL SELECT * FROM theirs) AS cleared"
        " HAVING EXISTS (SELECT FROM ours)",
    ),
    Move("memory_scope", "DELETE FROM memory_scope WHERE id = %(from_scope)s"),
)

# In one transaction in the end.
OF_USER: Final = (
    Move(
        "orchestrator_escalation",
        # Where a person answers both in one thread, the one is a part of the other.
        "UPDATE orchestrator_escalation AS moved SET user_id = %(to)s,"
        " resolved_at = CASE WHEN twin.id IS NULL THEN moved.resolved_at ELSE now() END,"
        " resolved_by = CASE WHEN twin.id IS NULL THEN moved.resolved_by ELSE %(by)s END"
        " FROM orchestrator_escalation AS own LEFT JOIN orchestrator_escalation AS twin"
        "  ON twin.user_id = %(to)s AND twin.agent_id = own.agent_id"
        "  AND twin.thread_id = own.thread_id"
        "  AND twin.resolved_at IS NULL AND own.resolved_at IS NULL"
        " WHERE moved.id = own.id AND moved.user_id = %(from)s",
    ),
    Move(
        "orchestrator_toolcall",
        "UPDATE orchestrator_toolcall SET user_id = %(to)s WHERE user_id = %(from)s",
    ),
    Move(
        "memory_memoryentry",
        # The same fact of both: one is from now on an old version of the other.
        "WITH twin AS ("
        " SELECT own.memory_id, kept.memory_id AS kept FROM memory_memoryentry AS own"
        " JOIN memory_memoryentry AS kept ON kept.user_id = %(to)s AND kept.version_of IS NULL"
        "  AND kept.content_digest = own.content_digest"
        "  AND kept.agent_id IS NOT DISTINCT FROM own.agent_id"
        " WHERE own.user_id = %(from)s AND own.version_of IS NULL"
        ") UPDATE memory_memoryentry AS moved SET version_of = twin.kept, valid_to = CASE"
        "  WHEN moved.memory_id = twin.memory_id"
        "  THEN greatest(valid_from, least(coalesce(valid_to, now()), now())) ELSE valid_to END"
        " FROM twin WHERE moved.memory_id = twin.memory_id OR moved.version_of = twin.memory_id",
    ),
    Move(
        "memory_memoryentry",
        "UPDATE memory_memoryentry SET user_id = %(to)s WHERE user_id = %(from)s",
    ),
    Move(
        "checkpoints",
        "UPDATE checkpoints SET metadata = jsonb_set(metadata, '{user_id}', to_jsonb(%(to)s::text))"
        " WHERE metadata ->> 'user_id' = %(from)s",
    ),
    Move(
        "memory_conversationitem",
        "UPDATE memory_conversationitem SET user_id = %(to)s WHERE user_id = %(from)s",
    ),
    Move(
        "channels_slackuser",
        "UPDATE channels_slackuser SET user_id = %(to)s WHERE user_id = %(from)s",
    ),
    Move(
        "audit_messageerasure",
        "UPDATE audit_messageerasure SET user_id = %(to)s WHERE user_id = %(from)s",
    ),
    # Who had to do with their memory: it is the other's now.
    Move(
        "audit_accessevent",
        "UPDATE audit_accessevent SET user_id = %(to)s WHERE user_id = %(from)s",
    ),
)

# Where a user's id stays as it is, and why.
STAYS: Final = {
    "api_apikey": "a key opens no more because two ids turned out to be one person's",
    "audit_erasurerequest": "what was asked for, and its receipt",
    "orchestrator_channelidentity": "the link itself",
    "orchestrator_moveofpast": "what is being done here",
}
