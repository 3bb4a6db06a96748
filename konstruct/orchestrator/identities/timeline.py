"""The timeline of a person: all events that concern them, latest first.

One statement reads each table by its index, for at most as many rows as a page has.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple, Self
from uuid import UUID

from tenants.audit.people import pseudonyms
from tenants.context import fetch_all

# The length to which texts of entries are cut.
MAX_TEXT: Final = 300
# The access log is read in the order of its ids, which is nearly that of its times: this many more
# of its rows are read, since a transaction may commit late.
LATE_ROWS: Final = 50


class EntryKind(StrEnum):
    """The kind of an entry, with the permission that a reader needs."""

    permission: str

    def __new__(cls, value: str, permission: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_, member.permission = value, permission
        return member

    MESSAGE = "message", "memory.view_message"
    RECALL = "recall", "memory.view_recallevent"
    FACT = "fact", "memory.view_memoryentry"
    ESCALATION = "escalation", "orchestrator.view_escalation"
    CONSENT = "consent", "orchestrator.view_toolcall"
    EXCLUSION = "exclusion", "memory.view_message"
    WINDOW = "window", "memory.view_windowclear"
    ACCOUNT = "account", "orchestrator.view_channelidentity"
    ERASURE = "erasure", "audit.view_erasurerequest"
    ACCESS = "access", "audit.view_accessevent"


class Entry(NamedTuple):
    """One event of a timeline."""

    at: datetime
    key: str
    """Unique in the timeline, and the order of entries of the same moment."""
    kind: EntryKind
    action: str
    """The event, such as a role, the action of a fact's event, or "resolved"."""
    agent_id: UUID | None
    user_id: str
    subject_id: str
    """The id of the row that the entry is about."""
    text: str
    """The message, question or fact, up to MAX_TEXT characters."""
    by: str
    """The name of the actor; "" without a name."""
    note: str
    """The reason, or the channel of a message."""


class Position(NamedTuple):
    """A position in a timeline: the entries before it follow."""

    at: datetime
    key: str = ""


@dataclass(frozen=True, slots=True)
class _Source:
    """Rows that are entries, and the expressions of an entry's fields."""

    kind: EntryKind
    rows: str
    """FROM and WHERE; `person.id` is an id of the person."""
    at: str = "created_at"
    id: str = "id"
    action: str = "''"
    agent_id: str = "agent_id"
    subject_id: str = "id::text"
    text: str = "''"
    by: str = "''"
    note: str = "''"

    @property
    def sql(self) -> str:
        key = f"('{self.kind}:' || {self.id}) COLLATE \"C\""
        moment = "%(at)s::timestamptz"
        return f"""
            SELECT {self.at}, {key}, '{self.kind}', {self.action}, {self.agent_id}, person.id,
                   {self.subject_id}, left({self.text}, {MAX_TEXT}), {self.by}, {self.note}
            {self.rows} AND (%(agent)s::uuid IS NULL OR {self.agent_id} = %(agent)s)
              AND {self.at} <= {moment} AND ({self.at} < {moment} OR {key} < %(key)s)
            ORDER BY 1 DESC, 2 DESC LIMIT %(limit)s
        """


_OF_AGENTS: Final = """agent_id IN (SELECT id FROM orchestrator_agent) AND user_id = person.id"""
_FACT_EVENTS: Final = """
    FROM memory_memoryentry AS entry
    LEFT JOIN memory_factevent AS event ON event.memory_id = entry.memory_id
    WHERE entry.user_id = person.id AND entry.version_of IS NULL
"""
_REQUESTS: Final = """FROM audit_erasurerequest
    WHERE (user_id = ANY(person.names) OR user_ids && person.names)"""
_ACCESS: Final = f"""
    (SELECT * FROM audit_accessevent
     WHERE {{condition}} AND created_at <= %(at)s::timestamptz
       AND (%(agent)s::uuid IS NULL OR agent_id = %(agent)s)
     ORDER BY id DESC LIMIT %(limit)s + {LATE_ROWS})
"""  # noqa: S608  (our constants)
_SHOWN: Final = """
    pseudonyms IS NOT NULL AND named.alias = ANY(pseudonyms)
    AND pseudonym IS DISTINCT FROM named.alias
"""
# Entries about the person, and those of lists, searches and exports that showed the person.
_ACCESSES: Final = f"""
    FROM (SELECT pseudonym AS alias FROM audit_person WHERE user_id = person.id) AS named
    CROSS JOIN LATERAL (
        {_ACCESS.format(condition="pseudonym = named.alias")}
        UNION ALL {_ACCESS.format(condition=_SHOWN)}
    ) AS event WHERE true
"""  # noqa: S608  (our constants)
_SOURCES: Final = (
    _Source(
        EntryKind.MESSAGE,
        "FROM memory_message WHERE user_id = person.id",
        action="role",
        text="content",
        by="name",
        note="channel",
    ),
    _Source(
        EntryKind.RECALL,
        "FROM memory_recallevent WHERE user_id = person.id",
        action="CASE WHEN abstained THEN 'abstained' ELSE 'recalled' END",
        subject_id="reply_id::text",
        text="(SELECT question.content FROM memory_message AS reply JOIN memory_message AS question"
        " ON question.id = reply.in_reply_to_id WHERE reply.id = reply_id)",
    ),
    _Source(
        EntryKind.FACT,
        _FACT_EVENTS,
        at="coalesce(event.created_at, entry.created_at)",
        id="coalesce(event.id, entry.memory_id)",
        action="coalesce(event.action, 'enter')",
        subject_id="entry.memory_id::text",
        text="content",
        by="coalesce(nullif(event.author_name, ''), event.author_kind, '')",
        note="coalesce(event.reason, '')",
    ),
    _Source(
        EntryKind.ESCALATION,
        "FROM orchestrator_escalation WHERE user_id = person.id",
        at="opened_at",
        id="id || ':opened'",
        action="CASE WHEN to_agent_id IS NULL THEN 'opened' ELSE 'handed_over' END",
        text="reason",
        by="coalesce(nullif(opened_by_name, ''), opened_by)",
    ),
    _Source(
        EntryKind.ESCALATION,
        "FROM orchestrator_escalation WHERE user_id = person.id AND resolved_at IS NOT NULL",
        at="resolved_at",
        id="id || ':resolved'",
        action="'resolved'",
        text="reason",
        by="resolved_by",
        note="note",
    ),
    _Source(
        EntryKind.CONSENT,
        "FROM orchestrator_toolcall WHERE user_id = person.id",
        id="id || ':asked'",
        action="'asked'",
        text="coalesce(nullif(question, ''), name)",
        note="name",
    ),
    _Source(
        EntryKind.CONSENT,
        "FROM orchestrator_toolcall WHERE user_id = person.id AND decided_at IS NOT NULL",
        at="decided_at",
        id="id || ':decided'",
        action="state",
        text="coalesce(nullif(question, ''), name)",
        by="decided_by",
        note="name",
    ),
    _Source(
        EntryKind.EXCLUSION,
        f"FROM memory_recallexclusion WHERE {_OF_AGENTS}",
        action="CASE WHEN memory_id IS NULL THEN 'excluded' ELSE 'corrected' END",
        subject_id="message_id::text",
        text="(SELECT content FROM memory_message AS message"
        " WHERE message.id = memory_recallexclusion.message_id)",
        by="author_name",
        note="reason",
    ),
    _Source(EntryKind.WINDOW, f"FROM memory_windowclear WHERE {_OF_AGENTS}", action="'cleared'"),
    _Source(
        EntryKind.ACCOUNT,
        "FROM orchestrator_channelidentity"
        " WHERE (own_id = person.id OR user_id = person.id AND own_id <> ALL (%(users)s))"
        " AND linked_at IS NOT NULL",
        at="linked_at",
        action="'linked'",
        agent_id="NULL::uuid",
        text="concat_ws(' ', channel, nullif(workspace, ''), native_id, nullif(name, ''))",
        by="linked_by",
    ),
    _Source(
        EntryKind.ERASURE,
        _REQUESTS,
        id="id || ':requested'",
        action="'requested'",
        by="requested_by",
        note="reason",
    ),
    _Source(
        EntryKind.ERASURE,
        f"{_REQUESTS} AND done_at IS NOT NULL",
        at="done_at",
        id="id || ':done'",
        action="'done'",
        by="requested_by",
        note="reason",
    ),
    _Source(
        EntryKind.ERASURE,
        "FROM audit_messageerasure WHERE user_id = person.id",
        id="id || ':message'",
        action="CASE WHEN message_id IS NULL THEN 'conversation' ELSE 'message' END",
        by="requested_by",
        note="reason",
    ),
    _Source(
        EntryKind.ACCESS,
        _ACCESSES,
        id="lpad(id::text, 19, '0')",
        action="action",
        text="subject",
        by="actor",
        note="CASE actor_kind WHEN 'person' THEN '' ELSE actor_kind END",
    ),
)


# The names of a person in logs and receipts are also the pseudonyms of an erased id.
_TIMELINE: Final = """
    WITH person (id, names) AS MATERIALIZED (
        SELECT id, array_agg(name)
        FROM unnest(%(owners)s::text[], %(names)s::text[]) AS named (id, name) GROUP BY id
    )
    SELECT * FROM ({branches}) AS entry
        (at, key, kind, action, agent_id, user_id, subject_id, text, by, note)
    ORDER BY at DESC, key DESC LIMIT %(limit)s
"""


def timeline(
    user_ids: Sequence[str],
    *,
    kinds: Collection[EntryKind] = tuple(EntryKind),
    agent_id: UUID | None = None,
    before: Position | None = None,
    limit: int = 50,
) -> list[Entry]:
    """Return the events of a person of the current tenant, latest first.

    Args:
        user_ids: the ids of the person, such as from `linked_ids`.
        kinds: the kinds of the entries.
        agent_id: only entries about this agent.
        before: only entries before this position.
        limit: the maximum number of entries.
    """
    branches = [
        f"SELECT found.* FROM person CROSS JOIN LATERAL ({source.sql}) AS found"  # noqa: S608
        for source in _SOURCES
        if source.kind in kinds
    ]
    if not branches:
        return []
    names = [(user_id, name) for user_id in user_ids for name in (user_id, *pseudonyms(user_id))]
    rows = fetch_all(
        _TIMELINE.format(branches=" UNION ALL ".join(branches)),
        {
            "users": list(user_ids),
            "owners": [user_id for user_id, _ in names],
            "names": [name for _, name in names],
            "agent": agent_id,
            "at": "infinity" if before is None else before.at,
            "key": "" if before is None else before.key,
            "limit": limit,
        },
    )
    return [Entry(*row)._replace(kind=EntryKind(row[2])) for row in rows]
