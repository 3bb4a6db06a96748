"""What is done with every table of a tenant when a person is erased. No table may be missing.

A table that is in neither list stops an erasure before it begins: better late than not whole.
"""

from dataclasses import dataclass
from typing import Final

from konstruct.privacy.erasure.person import OF_EVERY_AGENT, OF_PERSON

OF_SCOPE = "scope_id = ANY(%(scopes)s)"
OF_SESSION = "thread_id = ANY(%(sessions)s)"
OF_FACT = f"memory_id IN (SELECT memory_id FROM memory_memoryentry WHERE {OF_PERSON})"


@dataclass(frozen=True, slots=True)
class Rule:
    """Which rows of a table go."""

    table: str
    key: str = ""
    """Column whose values the receipt has a digest of; none where they come from what was said."""
    of_message: str = ""
    """Column that names a message: the row goes together with the message."""
    where: str = ""
    """Which rows go besides, once all messages are gone."""
    schema: str = ""
    """Where it is, if not in the tenant's own schema."""
    is_record: bool = False
    """It tells who did what: rows stay, without the person (erasure/stores/records.py)."""


# In the order in which rows go: those that refer to others before them.
RULES: Final = (
    Rule("orchestrator_pendingreply", "message_id", of_message="message_id", schema="public"),
    Rule("orchestrator_answeroptions", "message_id", of_message="message_id"),
    # What is not taken in yet, of whoever speaks as this user.
    Rule(
        "channels_arrival",
        where="%(agent)s::uuid IS NULL AND (channel, workspace, heard ->> 'user') IN ("
        "SELECT channel, workspace, native_id FROM orchestrator_channelidentity"
        f" WHERE {OF_EVERY_AGENT})",
    ),
    # What stands in the channel itself is not ours to remove.
    Rule("channels_delivery", "message_id", of_message="message_id"),
    # A name in a workspace is no one agent's.
    Rule("channels_slackuser", where=OF_EVERY_AGENT),
    Rule("orchestrator_toolcall", "id", of_message="message_id", where=OF_PERSON),
    Rule("orchestrator_escalation", "id", where=OF_PERSON),
    Rule("orchestrator_channelidentity", "id", where=OF_EVERY_AGENT),
    Rule(
        "orchestrator_moveofpast",
        "id",
        where="tenant_id = %(tenant)s AND %(agent)s::uuid IS NULL"
        " AND (user_id = ANY(%(users)s) OR from_user = ANY(%(users)s))",
    ),
    # Workers hold its rows while they write embeddings: this waits for them.
    Rule("memory_pendingembedding", "message_id", of_message="message_id"),
    Rule("memory_recallevent", "id", of_message="reply_id", where=OF_PERSON),
    Rule("memory_conversationembedding", "id", of_message="message_id", where=OF_PERSON),
    Rule("memory_messageattribute", of_message="message_id"),
    Rule("memory_conversationitem", "id", of_message="message_id", where=OF_PERSON),
    Rule("memory_message", "id", of_message="id"),
    Rule("memory_posting", where=OF_SCOPE),
    Rule("memory_indexedmessage", "message_id", where=OF_SCOPE),
    Rule("memory_windowclear", "id", where=OF_PERSON),
    Rule("memory_scope", where=OF_PERSON),
    Rule("memory_memoryattribute", where=OF_FACT),
    Rule("memory_memoryentry", "memory_id", where=OF_PERSON),
    Rule("checkpoint_writes", where=OF_SESSION),
    Rule("checkpoint_blobs", where=OF_SESSION),
    Rule("checkpoints", where=OF_SESSION),
    # Without its user a key would open more than before: it goes.
    Rule("api_apikey", "id", where=OF_PERSON),
    # What of it was asked for is in the access log.
    Rule("audit_messageerasure", "id", where=OF_PERSON),
    Rule("api_creation", is_record=True),
    Rule("django_admin_log", is_record=True),
    Rule("audit_accessevent", is_record=True),
)

# What no end user can be found in, and why.
EXEMPT: Final = {
    "audit_erasedid": "keyed digests",
    "audit_erasurerequest": "the receipts",
    "channels_slackinstallation": "workspaces, and who of the tenant's own people connected them",
    "audit_retentionrule": "numbers of days",
    "orchestrator_agent": "what the tenant's people write of an agent",
    "auth_user": "the tenant's own people",
    "auth_user_groups": "the tenant's own people",
    "auth_user_user_permissions": "the tenant's own people",
    "auth_group": "their roles",
    "auth_group_permissions": "their roles",
    "auth_permission": "made by migrate",
    "django_session": "log-ins of the tenant's own people",
    "django_content_type": "made by migrate",
    "django_migrations": "made by migrate",
    "checkpoint_migrations": "made by migrate",
}
