"""Finding messages by their words among all users of a tenant: for people who audit.

The lexical index is kept by scope; each scope is one probe for each word. A GIN index over the text
would be of no use, for its operators are not leakproof and row-level security keeps it out.
"""

from django.db import connection
from django.db.models import QuerySet

from memory import lexical
from memory.models import Message, PendingEmbedding, Scope

# Of what is not indexed yet, so many of the newest.
LOOKED_THROUGH = 500

_HOLDING_ALL = """
    SELECT message_number FROM memory_posting
    WHERE scope_id = ANY (ARRAY(SELECT id FROM memory_scope))
      AND h = ANY (%(terms)s::bigint[]) AND own
    GROUP BY message_number HAVING count(*) = cardinality(%(terms)s::bigint[])
    ORDER BY message_number DESC LIMIT %(limit)s
"""


def numbers_of_messages_with(text: str, *, limit: int = 1000) -> list[int]:
    """Numbers of the newest messages of the current tenant that hold every word of the text.

    Words are compared by their stems, and those that carry no meaning are passed over. What is not
    indexed yet is looked through as it stands.
    """
    lexemes = list(dict.fromkeys(lexical.lexemes(text)))
    if not lexemes:
        return []
    terms = [lexical.lexeme_hash(lexeme) for lexeme in lexemes]
    with connection.cursor() as cursor:
        cursor.execute(_HOLDING_ALL, {"terms": terms, "limit": limit})
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
