"""Replacing a person in details of the access log and of Django's admin log.

The entries stay. Ids become pseudonyms; texts about the person become a marker.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tenants.audit.pseudonyms import FIXED_FIELDS, candidates, dumps, replaced

# In the place of what was asked about the person, or said by them.
ERASED: Final = "(erased)"

# Fields that hold the id of a thread.
_THREADS: Final = frozenset({"thread", "thread_id"})
# Objects of which the names are ours; "" is the event's details.
_NESTED: Final = frozenset({"", "asked", "before", "after"})
# Of an entry about the person, these say nothing of them.
_KEPT: Final = FIXED_FIELDS | {"address", "path", "result"}


@dataclass(frozen=True, slots=True)
class Names:
    """What a person is called in the record, and what takes its place."""

    users: Mapping[str, str]
    """Each id of theirs, and its pseudonym."""
    threads: frozenset[str] = field(default_factory=frozenset)
    """Threads that are theirs alone."""
    everywhere: bool = True
    """Ids are replaced in texts too, and not only in fields that hold a user's id."""


def scrubbed(
    event: Mapping[str, Any], names: Names, *, is_theirs: bool, user_fields: set[str]
) -> dict[str, Any]:
    """Return an event of the access log without the person.

    Args:
        event: `user_id`, `subject_id`, `request_id` and `detail`.
        is_theirs: the event is about the person: texts in its details are replaced by a marker.
        user_fields: more names of fields that hold a user's id.
    """
    text = dumps(event)
    hits = [
        (each.start, each.stop, names.users[each.id])
        for each in candidates(text, user_fields=user_fields)
        if each.id in names.users and (names.everywhere or each.in_user_field)
    ]
    changed: dict[str, Any] = json.loads(replaced(text, hits))
    changed["detail"] = _without_texts("", changed["detail"], names, is_theirs=is_theirs)
    return changed


def _without_texts(name: str, value: Any, names: Names, *, is_theirs: bool) -> Any:
    if isinstance(value, Mapping):
        if is_theirs and name not in _NESTED:
            return ERASED  # names in it, such as those of metadata, are theirs too
        return {
            each: _without_texts(each, value[each], names, is_theirs=is_theirs) for each in value
        }
    if isinstance(value, list):
        return [_without_texts(name, each, names, is_theirs=is_theirs) for each in value]
    if not isinstance(value, str) or not value or value in names.users.values():
        return value
    is_text = is_theirs and name not in _KEPT
    is_thread = name in _THREADS and value in names.threads
    return ERASED if is_text or is_thread else value


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
