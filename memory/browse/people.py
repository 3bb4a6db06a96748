"""The end users of a tenant, with numbers of their messages and facts.

The cost depends on the users of a page and the agents, not on their messages: each step is a probe
of an index, and counts have limits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

from memory.browse.index_order import rows_in_order
from memory.models import PersonName
from memory.text.folding import fold
from tenants.context import connection, fetch_all, fetch_column, required_tenant_id

# Limits of counts for one agent and user: for a single user, and in a list.
MAX_COUNTED: Final = 10_000
MAX_COUNTED_IN_LIST: Final = 1_000
# The names of a user in a list.
MAX_NAMES: Final = 20
# Of facts: entries that are active and valid now.
_CURRENT = """AND tenant_id = %(tenant)s AND version_of IS NULL
          AND state = 'active' AND valid_from <= statement_timestamp()
          AND coalesce(valid_to > statement_timestamp(), true)
          AND coalesce(expires_at > statement_timestamp(), true)"""
_LAST_OF_USER = rows_in_order(
    "memory_message",
    {"user_id": "person.id"},
    *("created_at", "number"),
    latest_first=True,
    conditions="AND role = 'user'",
)
_LAST_NAME = f"""
SELECT message.name FROM unnest(%(users)s::text[]) AS person (id) CROSS JOIN LATERAL (
    SELECT name, created_at {_LAST_OF_USER} LIMIT 1
) AS message
ORDER BY message.created_at DESC LIMIT 1
"""  # noqa: S608  (our constants)
# The name of the last message of each, or else the newest one.
_NAME_OF_EACH = f"""
SELECT person.id, coalesce(nullif(last.name, ''), newest.name)
FROM unnest(%(users)s::text[]) AS person (id)
LEFT JOIN LATERAL (SELECT name {_LAST_OF_USER} LIMIT 1) AS last ON true
CROSS JOIN LATERAL (
    SELECT name FROM memory_personname WHERE user_id = person.id
    ORDER BY first_seen DESC, name LIMIT 1
) AS newest
"""  # noqa: S608  (our constants)
_USERS = """
WITH RECURSIVE step AS (
    SELECT {extreme}(user_id) AS user_id FROM ({first}) AS first
    UNION ALL
    SELECT (SELECT {extreme}(user_id) FROM ({following}) AS following)
    FROM step WHERE step.user_id IS NOT NULL
), agent_step AS (
    {first_agent}
), known AS (
    SELECT user_id FROM ({users}) AS users LIMIT %(limit)s
)
SELECT known.user_id, fact.count, called.names, spoken.*
FROM known
CROSS JOIN LATERAL (
    SELECT array_agg(name ORDER BY first_seen DESC, name) AS names FROM (
        SELECT name, first_seen FROM memory_personname
        WHERE tenant_id = %(tenant)s AND user_id = known.user_id {heard} LIMIT %(most_names)s
    ) AS name
) AS called
CROSS JOIN LATERAL (
    SELECT count(*) FROM (
        SELECT {facts} LIMIT %(most)s
    ) AS counted
) AS fact
LEFT JOIN LATERAL (
    SELECT agent_step.agent_id, message.count, first.created_at, latest.created_at,
        speaker.name, speaker.channel
    FROM agent_step
    CROSS JOIN LATERAL (
        SELECT created_at {messages} LIMIT 1
    ) AS first
    CROSS JOIN LATERAL (
        SELECT created_at {latest_messages} LIMIT 1
    ) AS latest
    LEFT JOIN LATERAL (
        SELECT name, channel {questions} LIMIT 1
    ) AS speaker ON true
    CROSS JOIN LATERAL (
        SELECT count(*) FROM (
            SELECT FROM memory_message
            WHERE tenant_id = %(tenant)s
              AND agent_id = agent_step.agent_id AND user_id = known.user_id
            LIMIT %(most)s
        ) AS counted
    ) AS message
) AS spoken ON true
ORDER BY known.user_id {order}, spoken.agent_id
"""
_ALL_USERS = "SELECT user_id FROM step WHERE user_id IS NOT NULL"
# Renamed, so that `user_id` is the column of the outer table.
_HAS_MESSAGE_IN_PERIOD = """ AND EXISTS (
    SELECT FROM (
        SELECT user_id AS speaker, created_at AS said_at FROM memory_message
        WHERE tenant_id = %(tenant)s
    ) AS said
    WHERE speaker = user_id AND said_at >= %(since)s AND said_at < %(until)s
)"""
# Ids and names are scanned: under row-level security Postgres uses no index for LIKE. Each table is
# read in the order of the ids, by an index, until the users of one page are found: if all ids
# contain the text, that is soon.
_MATCHING_USERS = """
SELECT user_id FROM (
    SELECT scope.user_id FROM agent_step CROSS JOIN LATERAL (
        SELECT user_id FROM memory_scope
        WHERE tenant_id = %(tenant)s AND agent_id = agent_step.agent_id
          AND {holds_text} {narrowing}
          AND EXISTS (
            SELECT FROM memory_message
            WHERE agent_id = memory_scope.agent_id AND user_id = memory_scope.user_id
          )
        ORDER BY user_id {order} LIMIT %(limit)s
    ) AS scope
    UNION (
        SELECT DISTINCT user_id FROM memory_memoryentry
        WHERE tenant_id = %(tenant)s AND version_of IS NULL AND {holds_text}
          {narrowing} {of_agent}
        ORDER BY user_id {order} LIMIT %(limit)s
    )
    UNION (
        SELECT DISTINCT user_id FROM memory_personname AS candidate CROSS JOIN LATERAL {exists}
        WHERE tenant_id = %(tenant)s
          AND (folded LIKE ALL (%(words)s::text[]) {heard} OR {holds_text})
          {narrowing}
        ORDER BY user_id {order} LIMIT %(limit)s
    )
    UNION (
        SELECT user_id FROM unnest(%(user_ids)s::text[]) AS candidate (user_id)
        CROSS JOIN LATERAL {exists} WHERE true {narrowing}
    )
) AS found
ORDER BY user_id {order}
"""
# For LIKE Postgres expects few rows, and would sort all of them.
_HOLDS_TEXT = "strpos(lower(user_id), lower(%(containing)s)) > 0"
# With a limit, so that Postgres probes for each candidate instead of reading a whole table.
_EXISTS = """(
    SELECT FROM (
        (SELECT FROM memory_message
         WHERE tenant_id = %(tenant)s AND user_id = candidate.user_id {of_agent} LIMIT 1)
        UNION ALL
        (SELECT FROM memory_memoryentry
         WHERE tenant_id = %(tenant)s AND user_id = candidate.user_id AND version_of IS NULL
         {of_agent} LIMIT 1)
    ) AS known LIMIT 1
) AS existing"""
# With one agent, only names in messages to this agent are searched.
_NAME_IN_MESSAGES = """AND EXISTS (
    SELECT FROM memory_message
    WHERE agent_id = %(agent)s AND user_id = {name}.user_id AND role = 'user'
      AND name = {name}.name
)"""
_FIRST_USER = """
(SELECT user_id FROM {table} WHERE tenant_id = %(tenant)s{conditions}
 ORDER BY user_id {order} LIMIT 1)
"""
_OF_AGENT_AND_USER = {"agent_id": "agent_step.agent_id", "user_id": "known.user_id"}
_BY_TIME = ("created_at", "number")
_IN_TENANT = "AND tenant_id = %(tenant)s"
_AGENTS = """
(SELECT agent_id FROM memory_message WHERE tenant_id = %(tenant)s ORDER BY agent_id LIMIT 1)
UNION ALL
SELECT following.agent_id FROM agent_step CROSS JOIN LATERAL (
    SELECT agent_id FROM memory_message
    WHERE tenant_id = %(tenant)s AND agent_id > agent_step.agent_id
    ORDER BY agent_id LIMIT 1
) AS following
"""
_INVISIBLE = r"[\s\u00a0\u00ad\u200b-\u200f\u2060-\u2064\ufeff]"
_NORMALIZED = f"lower(regexp_replace(normalize({{}}, NFKC), '{_INVISIBLE}', '', 'g'))"
_SIMILAR_IDS = f"""
SELECT DISTINCT user_id FROM memory_scope
WHERE user_id <> %(user)s AND {_NORMALIZED.format("user_id")} =
{_NORMALIZED.format("%(user)s::text")} ORDER BY user_id LIMIT %(limit)s
"""  # noqa: S608  (our constants)


@dataclass(frozen=True, slots=True)
class AgentUserCounts:
    """Numbers of one agent's rows about a user; each at most MAX_COUNTED_IN_LIST."""

    agent_id: UUID
    messages: int
    pieces: int
    recalls: int
    facts: int
    first_at: datetime | None
    latest_at: datetime | None


_OF_BOTH = {"agent_id": "agent.id", "user_id": "person.id"}
_EQUAL = " AND ".join(f"{column} = {value}" for column, value in _OF_BOTH.items())
_HAS_MESSAGES = f"first.at IS NOT NULL AND {_EQUAL}"
_FIRST = rows_in_order("memory_message", _OF_BOTH, *_BY_TIME)
_LATEST = rows_in_order("memory_message", _OF_BOTH, *_BY_TIME, latest_first=True)
# Messages and recalls are counted only if there are messages.
_COUNT_ROWS = """CROSS JOIN LATERAL (
    SELECT count(*) FROM (
        SELECT FROM {table}
        WHERE tenant_id = %(tenant)s AND {conditions} LIMIT %(most)s
    ) AS counted
) AS {name}"""
_COUNTS_BY_AGENT = f"""
SELECT agent.id, message.count, piece.count, recall.count, fact.count, first.at, latest.at
FROM unnest(%(agents)s::uuid[]) WITH ORDINALITY AS agent (id, place)
CROSS JOIN unnest(%(users)s::text[]) AS person (id)
LEFT JOIN LATERAL (SELECT created_at AS at {_FIRST} LIMIT 1) AS first ON true
LEFT JOIN LATERAL (SELECT created_at AS at {_LATEST} LIMIT 1) AS latest ON true
{_COUNT_ROWS.format(name="message", table="memory_message", conditions=_HAS_MESSAGES)}
{_COUNT_ROWS.format(name="piece", table="memory_conversationembedding", conditions=_EQUAL)}
{_COUNT_ROWS.format(name="recall", table="memory_recallevent", conditions=_HAS_MESSAGES)}
CROSS JOIN LATERAL (
    SELECT count(*) FROM (
        SELECT {rows_in_order("memory_memoryentry", _OF_BOTH, conditions=_CURRENT)}
        LIMIT %(most)s
    ) AS counted
) AS fact
ORDER BY agent.place
"""  # noqa: S608  (our constants)


def counts_by_agent(user_ids: Sequence[str], agent_ids: Sequence[UUID]) -> list[AgentUserCounts]:
    """Return the numbers of rows of a person by agent, without agents that have none.

    Args:
        user_ids: the ids of the person. Each count is at most MAX_COUNTED_IN_LIST per id.
        agent_ids: the agents, in the order of the result.
    """
    rows = fetch_all(
        _COUNTS_BY_AGENT,
        {
            "tenant": required_tenant_id(),
            "agents": list(agent_ids),
            "users": list(user_ids),
            "most": MAX_COUNTED_IN_LIST,
        },
    )
    results = []
    for agent_id, agent_rows in groupby(rows, itemgetter(0)):
        *counts, firsts, latests = zip(*(row[1:] for row in agent_rows), strict=True)
        messages, pieces, recalls, facts = map(sum, counts)
        if messages or pieces or facts:
            results.append(
                AgentUserCounts(
                    agent_id,
                    messages,
                    pieces,
                    recalls,
                    facts,
                    first_at=min(filter(None, firsts), default=None),
                    latest_at=max(filter(None, latests), default=None),
                )
            )
    return results


def names_of(user_ids: Sequence[str]) -> list[str]:
    """Return the names of a person: that of the last message first, then the newest ones.

    Args:
        user_ids: the ids of the person.
    """
    names = list(
        PersonName.objects.filter(user_id__in=user_ids)
        .order_by("-first_seen", "name")
        .values_list("name", flat=True)[:MAX_NAMES]
    )
    last = fetch_column(_LAST_NAME, {"users": list(user_ids)}) if len(names) > 1 else []
    return list(dict.fromkeys([*filter(None, last), *names]))


def displayed_names(user_ids: Iterable[str]) -> dict[str, str]:
    """Return the displayed name of each user that has one, by its id."""
    users = sorted(set(user_ids))
    return dict(fetch_all(_NAME_OF_EACH, {"users": users})) if users else {}


@dataclass(slots=True)
class UserSummary:
    """An end user, with numbers of their messages and facts; counts have limits."""

    user_id: str
    facts: int
    name: str = ""
    names: list[str] = field(default_factory=list)
    """All names, newest first."""
    channel: str = ""
    first_at: datetime | None = None
    last_at: datetime | None = None
    messages_by_agent: dict[UUID, int] = field(default_factory=dict)

    @property
    def messages(self) -> int:
        """The number of messages with all agents."""
        return sum(self.messages_by_agent.values())


def list_users(
    *,
    agent_id: UUID | None = None,
    user_id: str | None = None,
    containing: str = "",
    also_ids: Sequence[str] = (),
    after: str | None = None,
    descending: bool = False,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int,
) -> list[UserSummary]:
    """Return the users of the current tenant with messages or facts, sorted by id.

    Args:
        agent_id: only users of this agent, with its messages and facts only.
        user_id: only this user; counted up to MAX_COUNTED, not MAX_COUNTED_IN_LIST.
        containing: only users whose id contains this text, in any case, or one of whose names has
            each word of it, regardless of case and accents. A part of an id is found once a message
            is indexed, a whole id immediately.
        also_ids: with `containing`, these users too, if they have messages or facts.
        after: only users after this id (before it, if descending).
        since: only users with a message at or after this time.
        until: only users with a message before this time; with `since`, between the two.
        limit: maximum number of users.
    """
    narrowing = " AND user_id IS NOT NULL"
    of_agent = "" if agent_id is None else " AND agent_id = %(agent)s"
    of_user = "" if user_id is None else " AND user_id = %(user)s"
    narrowing += of_user
    compare, order = ("<", "DESC") if descending else (">", "ASC")
    start = "" if after is None else f" AND user_id {compare} %(beyond)s"
    has_message = _HAS_MESSAGE_IN_PERIOD if since or until else ""
    users = _ALL_USERS + has_message
    if containing:
        users = _MATCHING_USERS.format(
            narrowing=start + of_user + has_message,
            of_agent=of_agent,
            heard="" if agent_id is None else _NAME_IN_MESSAGES.format(name="candidate"),
            holds_text=_HOLDS_TEXT,
            exists=_EXISTS.format(of_agent=of_agent),
            order=order,
        )
    following = f" AND user_id {compare} step.user_id"
    messages_in_order = partial(rows_in_order, "memory_message", _OF_AGENT_AND_USER, *_BY_TIME)
    sql = _USERS.format(
        extreme="max" if descending else "min",
        first=_probes(narrowing + of_agent + start, order),
        following=_probes(narrowing + of_agent + following, order),
        first_agent=_AGENTS if agent_id is None else "SELECT %(agent)s::uuid AS agent_id",
        users=users,
        heard="" if agent_id is None else _NAME_IN_MESSAGES.format(name="memory_personname"),
        of_agent=of_agent,
        facts=rows_in_order(
            "memory_memoryentry", {"user_id": "known.user_id"}, conditions=_CURRENT + of_agent
        ),
        messages=messages_in_order(conditions=_IN_TENANT),
        latest_messages=messages_in_order(latest_first=True, conditions=_IN_TENANT),
        questions=messages_in_order(
            latest_first=True, conditions=f"{_IN_TENANT} AND role = 'user'"
        ),
        order=order,
    )
    escape = connection.ops.prep_for_like_query
    parameters = {
        "tenant": required_tenant_id(),
        "agent": agent_id,
        "user": user_id,
        "containing": containing,
        "words": [f"%{escape(word)}%" for word in fold(containing).split()] or [""],
        "user_ids": [containing, *also_ids],
        "beyond": after,
        "since": since or datetime.min.replace(tzinfo=UTC),
        "until": until or datetime.max.replace(tzinfo=UTC),
        "limit": limit,
        "most_names": MAX_NAMES,
        "most": MAX_COUNTED_IN_LIST if user_id is None else MAX_COUNTED,
    }
    return [
        _user_summary(found_id, rows)
        for found_id, rows in groupby(fetch_all(sql, parameters), itemgetter(0))
    ]


def similar_user_ids(user_id: str, limit: int = 5) -> list[str]:
    """Return other users whose ids differ only in case, white space, invisible characters or
    composition.

    All users are compared: for a page on which a person decides about one user. Similar letters of
    different scripts are not found.
    """
    return fetch_column(_SIMILAR_IDS, {"user": user_id, "limit": limit})


def _user_summary(user_id: str, rows: Iterable[tuple[Any, ...]]) -> UserSummary:
    """Return a user from its rows: one for each agent, or one without an agent."""
    user = UserSummary(user_id, 0)
    for _, user.facts, names, agent_id, messages, first_at, last_at, name, channel in rows:
        user.names = names or []
        if agent_id is None:
            continue
        user.messages_by_agent[agent_id] = messages
        user.first_at = min(user.first_at or first_at, first_at)
        if user.last_at is None or last_at >= user.last_at:
            user.last_at, user.name, user.channel = last_at, name or "", channel or ""
    # The last message may lack a name that earlier ones have.
    user.name = user.name or next(iter(user.names), "")
    return user


def _probes(conditions: str, order: str) -> str:
    # Old versions of facts do not count, and the index does not contain them.
    entries = f"{conditions} AND version_of IS NULL"
    return " UNION ALL ".join(
        _FIRST_USER.format(table=table, conditions=narrowing, order=order)
        for table, narrowing in (("memory_message", conditions), ("memory_memoryentry", entries))
    )
