"""Names of people: written with their messages, and searched without case and accents."""

import unicodedata
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from memory.arguments import is_blank
from memory.models import Message, Role
from tenants.context import execute

# Longer texts are no names of people, and do not fit into the index.
MAX_NAME_CHARACTERS: Final = 200
# Letters that Unicode does not decompose into a letter and an accent.
_LETTERS: Final = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"}
)
_RECORD: Final = """
INSERT INTO memory_personname (user_id, name, folded, first_seen)
SELECT DISTINCT ON (user_id, name) user_id, name, folded, coalesce(sent_at, now())
FROM unnest(
    %(users)s::text[], %(names)s::text[], %(folded)s::text[], %(times)s::timestamptz[]
) AS said (user_id, name, folded, sent_at)
ORDER BY user_id, name, sent_at
ON CONFLICT DO NOTHING
"""


def fold(text: str) -> str:
    """Return a text without case, accents and repeated blanks: "Łukasz  É." becomes "lukasz e."."""
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    plain = "".join(character for character in decomposed if not unicodedata.combining(character))
    return " ".join(plain.translate(_LETTERS).split())


def has_storable_name(message: Message) -> bool:
    """Return whether the message has a name of its user that fits into the table of names."""
    name = message.name
    return message.role == Role.USER and not is_blank(name) and len(name) <= MAX_NAME_CHARACTERS


def record_names(messages: Iterable[Message]) -> None:
    """Write the names of the users of messages of the current tenant, each once.

    Call it in the transaction that writes the messages. The statement is sent with the next one.
    """
    rows = [
        (message.user_id, message.name, fold(message.name), _sent_at(message))
        for message in messages
        if has_storable_name(message)
    ]
    if rows:
        columns = zip(*rows, strict=True)
        values = dict(zip(("users", "names", "folded", "times"), map(list, columns), strict=True))
        execute(_RECORD, values)


def _sent_at(message: Message) -> Any:
    """Return the time of a message; None if Postgres sets it."""
    return message.created_at if isinstance(message.created_at, datetime) else None
