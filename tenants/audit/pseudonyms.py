"""Pseudonyms of erased users: keyed digests that replace their ids in the access log.

A reader who knows an id can find its receipt and the entries about it; a reader who does not
cannot recover the id (docs/decisions/0028-an-erased-id-is-kept-as-a-keyed-digest.md).
"""

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote_plus

from django.conf import settings

from tenants.context import required_tenant_id

PREFIX = "erased:"
_SALT = b"konstruct.audit.pseudonyms"
# 128 bits: no two ids of a tenant share them.
_DIGITS = 32

# Fields of the access log that hold a user's id.
USER_FIELDS: Final = frozenset(
    {"becomes", "from_user", "native_id", "own_id", "user", "user_id", "was", "whose"}
)
# Fields that never hold text of a client or of a user.
FIXED_FIELDS: Final = frozenset(
    {"action", "agent", "attempted", "command", "ip", "method", "outcome", "scope", "state"}
    | {"withheld"}
)
_SEARCH_FIELDS: Final = frozenset({"q", "query"})
# Names of parameters: a user with such an id does not rename them.
_PARAMETERS: Final = USER_FIELDS | FIXED_FIELDS | _SEARCH_FIELDS | {"limit", "metadata", "o", "p"}
# The largest number of consecutive words, and of their parts, that may form an id.
MAX_WORDS: Final = 3
MAX_PARTS: Final = 8
# Longer texts, such as a changed persona, are searched for ids of one word.
MAX_PHRASED_CHARACTERS: Final = 500
# The most candidates of one event. The longest event of the API has about 3,000.
MAX_CANDIDATES: Final = 20_000
# Shorter ids and numbers are searched for in user fields only: "1" is in every address.
MIN_CHARACTERS: Final = 3
MIN_DIGITS: Final = 6

_STRINGS: Final = re.compile(r'"((?:[^"\\]|\\.)*)"(:?)')
_TOKENS: Final = re.compile(r"\\u[0-9a-f]{4}|\\.|[^\W_]+|[\W_]")
_RUNS: Final = re.compile(r"\S+")
_PIECES: Final = re.compile(r"""[^\s\\&?/=,;"'()<>\[\]{}|]+""")
_QUERY: Final = re.compile(r"(?:([^&=]*)=)?([^&]+)")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Candidate(NamedTuple):
    """A part of an event's JSON that may be a user's id."""

    id: str
    start: int
    stop: int
    in_user_field: bool
    """It is the whole value of a field that holds a user's id."""


def pseudonym(user_id: str) -> str:
    """Return the pseudonym of a user of the current tenant."""
    return _digest(user_id, settings.SECRET_KEY)


def pseudonyms(user_id: str) -> list[str]:
    """Return the pseudonyms of a user under each SECRET_KEY that is or was in use."""
    return [
        _digest(user_id, secret) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    ]


def id_candidates(event: str, *, user_fields: Iterable[str] = ()) -> list[Candidate]:
    """Return the parts of an event that may be a user's id.

    Args:
        event: a JSON object without escaped letters (``ensure_ascii=False``), as `dumps` makes it.
        user_fields: more names of fields that hold a user's id.
    """
    found: dict[Candidate, None] = {}
    of_users = USER_FIELDS | set(user_fields)
    for name, text, offset in _texts(event):
        spans = [(0, len(text))] if name in of_users else _spans(text)
        for start, stop in spans:
            is_field = stop - start == len(text) and name in of_users
            is_searched = stop - start == len(text) and name in _SEARCH_FIELDS
            for id in _decodings(text[start:stop]):
                if is_field or is_searched or is_distinctive(id):
                    found[Candidate(id, offset + start, offset + stop, is_field)] = None
        if len(found) > MAX_CANDIDATES:
            raise ValueError(f"an event has more than {MAX_CANDIDATES} parts to check for ids")
    return list(found)


def dumps(event: object) -> str:
    """Return JSON in which `candidates` finds ids."""
    return json.dumps(event, ensure_ascii=False)


def replace_spans(event: str, hits: Iterable[tuple[int, int, str]]) -> str:
    """Return the event with parts replaced; of parts that overlap, the first and longest."""
    parts, done = [], 0
    for start, stop, name in sorted(hits, key=lambda hit: (hit[0], -hit[1])):
        if start >= done:
            parts += [event[done:start], name]
        done = max(done, stop)
    return "".join([*parts, event[done:]])


def _texts(event: str) -> Iterator[tuple[str, str, int]]:
    """Yield values and unknown names, each with its field and its position in the event."""
    name = ""
    for string in _STRINGS.finditer(event):
        text, offset = string[1], string.start(1)
        if string[2]:
            name = text
            if text and text not in _PARAMETERS:
                yield "", text, offset
        elif name == "address":
            for part in _QUERY.finditer(text):
                parameter = (part[1] or "").removesuffix("__exact")
                if parameter not in FIXED_FIELDS:
                    yield parameter, part[2], offset + part.start(2)
        elif text and name not in FIXED_FIELDS:
            yield name, text, offset


def _spans(text: str) -> Iterator[tuple[int, int]]:
    yield 0, len(text)
    if _UUID.fullmatch(text):
        return
    for pattern in (_RUNS, _PIECES):
        yield from (match.span() for match in pattern.finditer(text))
    tokens = [(match[0], *match.span()) for match in _TOKENS.finditer(text)]
    is_long = len(text) > MAX_PHRASED_CHARACTERS
    for place, (first, start, _) in enumerate(tokens):
        if not first[0].isalnum():
            continue
        words = parts = 1
        for token, _, stop in tokens[place:]:
            if token.isspace() or token[0] == "\\":
                words += 1
                if is_long or words > MAX_WORDS:
                    break
            elif token[0].isalnum():
                yield start, stop
                parts += 1
                if parts > MAX_PARTS:
                    break


def _decodings(raw: str) -> Iterator[str]:
    """Yield the text as it is in JSON, and with its URL encoding removed."""
    try:
        text: str = json.loads(f'"{raw}"') if "\\" in raw else raw
    except ValueError:
        return
    yield text
    if "%" in text or "+" in text:
        yield unquote_plus(text)


def is_distinctive(id: str) -> bool:
    """Return whether an id is long enough to be recognised in texts."""
    return len(id) >= (MIN_DIGITS if id.isdecimal() else MIN_CHARACTERS)


def _digest(user_id: str, secret: str | bytes) -> str:
    value = f"{required_tenant_id()}\0{user_id}".encode()
    return PREFIX + hmac.digest(_key(secret), value, "sha256").hex()[:_DIGITS]


@lru_cache(maxsize=16)
def _key(secret: str | bytes) -> bytes:
    # As django.utils.crypto.salted_hmac derives it.
    given = secret.encode() if isinstance(secret, str) else secret
    return hashlib.sha256(_SALT + given).digest()
