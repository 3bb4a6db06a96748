"""What is done with every table of a tenant when a person is erased. No table may be missing.

A table that is in neither list stops an erasure before it begins: better late than not whole.
"""

from dataclasses import dataclass
from typing import Final

from konstruct.trust.erasure.person import OF_PERSON

OF_MESSAGE = f"message_id IN (SELECT id FROM memory_message WHERE {OF_PERSON})"
OF_FACT = f"memory_id IN (SELECT memory_id FROM memory_memoryentry WHERE {OF_PERSON})"
# Of a person as such: what one agent knows of them stays out of it.
OF_EVERY_AGENT = "tenant_id = %(tenant)s AND user_id = %(user)s AND %(agent)s::uuid IS NULL"
OF_THREAD = "thread_id = ANY(%(threads)s)"


@dataclass(frozen=True, slots=True)
class Rule:
    """Which rows of a table go, or are changed."""

    table: str
    where: str
    key: str = ""
    """Column whose values the receipt has a digest of; none where they come from what was said."""
    change: str = ""
    """Instead of removing the rows: what is SET."""
    changed: str = "false"
    """With `change`: which rows need it no more."""


# In the order in which rows go: those that refer to others before them.
RULES: Final = (
    Rule("orchestrator_pendingreply", OF_MESSAGE, "message_id"),
    # What is not taken in yet, of whoever speaks as this user.
    Rule(
        "channels_arrival",
        "%(agent)s::uuid IS NULL AND (channel, workspace, heard ->> 'user') IN ("
        "SELECT channel, workspace, native_id FROM orchestrator_channelidentity"
        " WHERE user_id = %(user)s)",
    ),
    # What stands in the channel itself is not ours to remove.
    Rule("channels_delivery", OF_MESSAGE, "message_id"),
    # A name in a workspace is no one agent's.
    Rule("channels_slackuser", "user_id = %(user)s AND %(agent)s::uuid IS NULL"),
    Rule("orchestrator_toolcall", OF_PERSON, "id"),
    Rule("orchestrator_escalation", OF_PERSON, "id"),
    Rule("orchestrator_channelidentity", OF_EVERY_AGENT, "id"),
    Rule(
        "orchestrator_moveofpast",
        f"({OF_EVERY_AGENT}) OR (from_user = %(user)s AND %(agent)s::uuid IS NULL)",
        "id",
    ),
    # Workers hold its rows while they write embeddings: this waits for them.
    Rule("memory_pendingembedding", OF_MESSAGE, "message_id"),
    Rule("memory_recallevent", OF_PERSON, "id"),
    Rule("memory_posting", "scope_id = ANY(%(scopes)s)"),
    Rule("memory_indexedmessage", "scope_id = ANY(%(scopes)s)", "message_id"),
    Rule("memory_conversationembedding", OF_PERSON, "id"),
    Rule("memory_message", OF_PERSON, "id"),
    Rule("memory_windowclear", OF_PERSON, "id"),
    Rule("memory_scope", OF_PERSON),
    Rule("memory_memoryattribute", OF_FACT),
    Rule("memory_memoryentry", OF_PERSON, "memory_id"),
    Rule("checkpoint_writes", OF_THREAD),
    Rule("checkpoint_blobs", OF_THREAD),
    Rule("checkpoints", OF_THREAD),
    # Without its user a key would open more than before: it goes.
    Rule("api_apikey", OF_PERSON, "id"),
    Rule("api_creation", "made::text = ANY(%(ids)s) OR operation ~ %(word)s"),
    Rule(
        "django_admin_log",
        "object_id = ANY(%(ids)s) OR object_repr ~ %(word)s OR change_message ~ %(word)s",
    ),
    # That somebody looked at something stays; whose it was, and what was asked, does not.
    Rule(
        "audit_accessevent",
        f"({OF_PERSON}) OR subject_id = ANY(%(ids)s) OR detail::text ~ %(word)s"
        " OR subject_id ~ %(word)s"
        " OR subject_id = ANY(%(threads)s) OR detail ->> 'thread_id' = ANY(%(threads)s)",
        change="user_id = NULL, detail = '{}',"
        " subject_id = CASE WHEN action = 'erase' THEN subject_id ELSE '' END",
        changed="user_id IS NULL AND detail = '{}' AND (subject_id = '' OR action = 'erase')",
    ),
)

# What no end user can be found in, and why.
EXEMPT: Final = {
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
