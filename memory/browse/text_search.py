"""Finding messages by their words among all users of a tenant: for people who audit.

The lexical index is kept by scope; each scope is one probe for each word. A GIN index over the text
would be of no use, for its operators are not leakproof and row-level security keeps it out.
"""

from django.db.models import QuerySet

from memory.models import Message, PendingEmbedding, Scope
from memory.text import lexical
from tenants.context import connection

# Of what is not indexed yet, so many of the newest.
LOOKED_THROUGH = 500

# Words of a text that is searched for; those after it change nothing.
MOST_TERMS = 32
# Of a scope, so many of the newest messages with the rarest word are looked at for the others.
LOOKED_AT = 5_000
# How rare a word is, as far as that matters.
COUNTED_UP_TO = 1_000

_RAREST = """
    SELECT h FROM unnest(%(terms)s::bigint[]) AS term (h)
    ORDER BY (
        SELECT count(*) FROM (
            SELECT FROM memory_posting
            WHERE scope_id = ANY (ARRAY(SELECT id FROM memory_scope)) AND h = term.h
            LIMIT %(counted)s
        ) AS counted
    ), h LIMIT 1
"""
# Of each scope no more than can be asked for in all.
_HOLDING_ALL = """
    SELECT message_number FROM memory_scope CROSS JOIN LATERAL (
        SELECT message_number FROM (
            SELECT message_number FROM memory_posting
            WHERE scope_id = memory_scope.id AND h = %(rarest)s AND own
            ORDER BY message_number DESC LIMIT %(looked_at)s
        ) AS candidate
        WHERE NOT EXISTS (
            SELECT FROM unnest(%(terms)s::bigint[]) AS term (h) WHERE NOT EXISTS (
                SELECT FROM memory_posting other
                WHERE other.scope_id = memory_scope.id AND other.h = term.h AND other.own
                  AND other.message_number = candidate.message_number
            )
        )
        ORDER BY message_number DESC LIMIT %(limit)s
    ) AS found
    ORDER BY message_number DESC LIMIT %(limit)s
"""


def numbers_of_messages_with(text: str, *, limit: int = 1000) -> list[int]:
    """Numbers of the newest messages of the current tenant that hold every word of the text.

    Words are compared by their stems, and those that carry no meaning are passed over. What is not
    indexed yet is looked through as it stands.
    """
    lexemes = list(dict.fromkeys(lexical.lexemes(text)))[:MOST_TERMS]
    if not lexemes:
        return []
    terms = [lexical.lexeme_hash(lexeme) for lexeme in lexemes]
    with connection.cursor() as cursor:
        cursor.execute(_RAREST, {"terms": terms, "counted": COUNTED_UP_TO})
        (rarest,) = cursor.fetchone()
        cursor.execute(
            _HOLDING_ALL,
            {"terms": terms, "rarest": rarest, "looked_at": LOOKED_AT, "limit": limit},
        )
        found = [number for (number,) in cursor.fetchall()]
    waiting = [
        number
        for number, content in _not_indexed().values_list("message__number", "message__content")
        if set(lexemes) <= set(lexical.lexemes(content))
    ]
    return [*waiting, *found][:limit]


def numbers_of_messages_of(user_id: str, *, limit: int = 1000) -> list[int]:
    """Numbers of the newest messages between one user and any agent."""
    agents = list(Scope.objects.filter(user_id=user_id).values_list("agent_id", flat=True))
    known = (
        Message.objects.filter(agent_id__in=agents, user_id=user_id)
        .order_by("-number")
        .values_list("number", flat=True)[:limit]
    )
    # An agent that has nothing indexed of the user has no scope yet.
    waiting = _not_indexed().filter(message__user_id=user_id)
    return [*known, *waiting.values_list("message__number", flat=True)]


def _not_indexed() -> QuerySet[PendingEmbedding]:
    """The newest of what waits; there is little of it, but for the minutes of an import."""
    newest = PendingEmbedding.objects.order_by("-message__number").values("pk")[:LOOKED_THROUGH]
    return PendingEmbedding.objects.filter(pk__in=newest)
