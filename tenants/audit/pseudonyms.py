"""Pseudonyms of erased users: keyed digests that replace their ids in the access log.

A reader who knows an id can find its receipt and the entries about it; a reader who does not
cannot recover the id (docs/decisions/0028-erased-ids-and-receipts-have-keyed-digests.md).
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
# 128 bits, so that no two ids of a tenant have the same pseudonym.
_DIGITS = 32

# Fields of the access log whose value is the id of a user.
USER_FIELDS: Final = frozenset(
    {"becomes", "from_user", "native_id", "own_id", "user", "user_id", "was", "whose"}
)
# Fields whose values are never text of a client or of a user.
FIXED_FIELDS: Final = frozenset(
    {"action", "agent", "attempted", "command", "ip", "method", "outcome", "scope", "state"}
    | {"withheld"}
)
_SEARCH_FIELDS: Final = frozenset({"q", "query"})
# Names of parameters, which are not replaced even if a user has such an id.
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
    """Whether it is the whole value of a field in USER_FIELDS."""


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
        user_fields: further fields whose value is the id of a user.
    """
    candidates: dict[Candidate, None] = {}
    all_user_fields = USER_FIELDS | set(user_fields)
    for name, text, offset in _texts(event):
        spans = [(0, len(text))] if name in all_user_fields else _spans(text)
        for start, stop in spans:
            is_whole = stop - start == len(text)
            in_user_field = is_whole and name in all_user_fields
            in_search_field = is_whole and name in _SEARCH_FIELDS
            for id in _decodings(text[start:stop]):
                if in_user_field or in_search_field or is_distinctive(id):
                    candidates[Candidate(id, offset + start, offset + stop, in_user_field)] = None
        if len(candidates) > MAX_CANDIDATES:
            raise ValueError(f"an event has more than {MAX_CANDIDATES} parts to check for ids")
    return list(candidates)


def dumps(event: object) -> str:
    """Return an event as JSON for `id_candidates`."""
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
