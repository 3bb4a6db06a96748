"""Replacing a person in what the record says, field by field. Pure: no Django, no I/O.

The record tells who did what. It stays, and so does every value in it that is not the person's:
an id is replaced where a field holds a user's id and this is it, and nowhere else.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote_plus, unquote_plus

# In the place of what was asked about the person, or said by them.
ERASED: Final = "(erased)"

# Fields of the access log's details that hold a user's id.
_USERS: Final = frozenset(
    {"becomes", "from_user", "native_id", "own_id", "user", "user_id", "was", "whose"}
)
# Fields that hold the id of a thread.
_THREADS: Final = frozenset({"thread", "thread_id"})
# Lists whose search term is compared with users' ids.
_SEARCHED_BY_USER: Final = frozenset(
    {"access", "erasure request", "escalation", "identity", "message", "people", "tool call"}
)
# What an entry about the person says of others than them.
_KEPT: Final = frozenset(
    {
        *("action", "address", "agent", "command", "ip", "method", "outcome", "path", "result"),
        *("scope", "state", "withheld"),
    }
)


@dataclass(frozen=True, slots=True)
class Names:
    """What a person is called in the record, and what takes its place."""

    users: Mapping[str, str]
    """Each id of theirs, and its pseudonym."""
    threads: frozenset[str] = field(default_factory=frozenset)
    """Threads that are theirs alone."""


def scrubbed_detail(
    detail: Mapping[str, Any], names: Names, *, subject: str, is_theirs: bool
) -> dict[str, Any]:
    """Return the details of an entry of the access log without the person.

    Args:
        subject: with what somebody had to do, as the entry says.
        is_theirs: the entry is about the person: of its texts only those stay that cannot be
            about them.
    """
    return {
        name: _scrubbed(name, value, names, subject=subject, is_theirs=is_theirs)
        for name, value in detail.items()
    }


def _scrubbed(name: str, value: Any, names: Names, *, subject: str, is_theirs: bool) -> Any:
    if isinstance(value, Mapping):
        return scrubbed_detail(value, names, subject=subject, is_theirs=is_theirs)
    if isinstance(value, list):
        return [
            _scrubbed(name, each, names, subject=subject, is_theirs=is_theirs) for each in value
        ]
    if not isinstance(value, str) or not value:
        return value
    if name == "address" and "=" in value:
        return _scrubbed_query(value, names, subject=subject)
    names_user = name in _USERS or (name == "query" and subject in _SEARCHED_BY_USER)
    if value in names.users and (names_user or (is_theirs and name not in _KEPT)):
        return names.users[value]
    if is_theirs and name not in _KEPT:
        return ERASED
    return ERASED if name in _THREADS and value in names.threads else value


def _scrubbed_query(query: str, names: Names, *, subject: str) -> str:
    """Replace parameters of an address whose whole value is a user's id."""
    parts = []
    for part in query.split("&"):
        name, separator, value = part.partition("=")
        field_name = name.removesuffix("__exact")
        names_user = field_name in _USERS or (name == "q" and subject in _SEARCHED_BY_USER)
        given = unquote_plus(value)
        if names_user and given in names.users:
            part = f"{name}{separator}{quote_plus(names.users[given])}"
        parts.append(part)
    return "&".join(parts)


def scrubbed_change_message(message: str) -> str:
    """Return what Django's admin log says of a change of something of the person's.

    Names of fields stay, names of things do not.
    """
    try:
        changes = json.loads(message)
    except ValueError:
        return ERASED if message else ""
    if not isinstance(changes, list):
        return ERASED
    kept = []
    for change in changes:
        if not isinstance(change, dict):
            return ERASED
        kept.append(
            {
                kind: {**told, "object": ERASED} if "object" in told else told
                for kind, told in change.items()
                if isinstance(told, dict)
            }
        )
    return json.dumps(kept)
