"""Removes a person from the access log and Django's admin log. The entries stay.

Ids are replaced by pseudonyms, and texts about the person by a marker.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, quote_plus

from django.contrib.admin.models import LogEntry

from konstruct.api.models import IdempotencyRecord
from konstruct.privacy.erasure.person import IDS, OF_PERSON, Person
from konstruct.privacy.erasure.person_matcher import stream, subjects_with_texts
from konstruct.privacy.erasure.progress import ErasureProgress
from konstruct.privacy.erasure.redaction import ERASED
from tenants import transaction
from tenants.audit.access_log import USER_SUBJECTS
from tenants.audit.models import AccessEvent, Action, ErasedId
from tenants.audit.pseudonyms import FIXED_FIELDS, dumps, id_candidates, pseudonym, replace_spans
from tenants.context import fetch_all, fetch_column, fetch_value

BATCH = 1000
_COLUMNS: Final = ("user_id", "subject_id", "request_id", "detail")

# Fields with the id of a thread.
_THREADS: Final = frozenset({"thread", "thread_id"})
# Objects with fixed names of fields; "" is the event's details.
_NESTED: Final = frozenset({"", "asked", "before", "after"})
# Fields of an entry about the person that contain nothing about them.
_KEPT: Final = FIXED_FIELDS | {"address", "path", "result"}

# Each reads the table once. A search for people may have been for one of their names.
_EVENTS: Final = f"""
    SELECT id, true FROM audit_accessevent WHERE {OF_PERSON}
    UNION
    SELECT event.id, true FROM audit_accessevent AS event JOIN ({IDS}) AS theirs
      ON theirs.id = event.subject_id
    UNION
    SELECT id, true FROM audit_accessevent
    WHERE subject = 'session' AND subject_id = ANY(%(sessions)s)
    UNION
    SELECT event.id, true FROM audit_accessevent AS event
    CROSS JOIN lower(coalesce(detail ->> 'query', detail -> 'asked' ->> 'q')) AS searched
    WHERE %(agent)s::uuid IS NULL AND subject = 'people' AND searched <> '' AND EXISTS (
      SELECT FROM memory_personname AS called, unnest(ARRAY[lower(name), folded]) AS written
      WHERE called.user_id = ANY(%(users)s)
        AND (strpos(written, searched) > 0 OR strpos(searched, written) > 0)
    )
    UNION
    SELECT id, false FROM audit_accessevent
    WHERE %(agent)s::uuid IS NULL AND EXISTS (
      SELECT FROM unnest(%(written)s::text[]) AS id
      WHERE strpos(concat_ws(' ', detail, subject_id, request_id), id) > 0
    )
"""
# JSON escapes quotes and line breaks.
_WITH_TEXTS: Final = r"""
    SELECT id, regexp_replace(detail::text, '\\[bfnrt"]', ' ', 'g')
    FROM audit_accessevent WHERE subject = ANY(%(subjects)s)
"""
_KNOWN: Final = f"""
    SELECT EXISTS ({IDS}) OR EXISTS (
        SELECT FROM audit_accessevent WHERE {OF_PERSON} AND action <> '{Action.ERASE}')
"""
_LOGGED: Final = f"""
    SELECT entry.id FROM django_admin_log AS entry JOIN ({IDS}) AS theirs
      ON theirs.id = entry.object_id
"""
_CREATED: Final = f"""
    DELETE FROM api_creation USING ({IDS}) AS theirs
    WHERE made::text = theirs.id RETURNING made::text
"""


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """The ids of a person with their pseudonyms, and the threads of the person."""

    users: Mapping[str, str]
    """The pseudonym of each id."""
    threads: frozenset[str] = field(default_factory=frozenset)
    """Threads with messages of the person only."""
    everywhere: bool = True
    """Whether ids are replaced in texts too, and not only in fields for ids of users."""


def pseudonymize(person: Person, progress: ErasureProgress) -> None:
    """Replace the person's ids in the logs by pseudonyms, and texts about them by a marker.

    Records of Idempotency-Keys that created rows of the person are deleted.
    """
    users = {user_id: pseudonym(user_id) for user_id in person.user_ids}
    is_known = _is_known(person, progress)
    if is_known and person.agent_id is None:
        # From here on `record_access` writes the pseudonyms.
        ErasedId.objects.bulk_create(
            [ErasedId(digest=digest) for digest in users.values()], ignore_conflicts=True
        )
    names = Pseudonyms(users, frozenset(person.threads), everywhere=is_known)
    about = _events(person, [*users.values()])
    for ids in _batches(sorted(about)):
        _pseudonymize_events(ids, about, names, progress)
    for ids in _batches(sorted(set(fetch_column(_LOGGED, person.parameters())))):
        _redact_log_entries(ids, progress)
    with transaction.atomic():
        keys = fetch_column(_CREATED, person.parameters())
        progress.add_rows(IdempotencyRecord._meta.db_table, keys, len(keys), "removed")
        progress.save()


def _is_known(person: Person, progress: ErasureProgress) -> bool:
    """Return whether any row besides the request has the person's id.

    Otherwise the id may be any word, such as `agent`, and is not replaced in texts.
    """
    if person.agents or progress.found["tables"].keys() - {AccessEvent._meta.db_table}:
        return True
    return bool(fetch_value(_KNOWN, person.parameters()))


def _events(person: Person, names: Sequence[str]) -> dict[int, bool]:
    """Return the ids of entries that may contain the person's id or name.

    The values are True for entries about the person, such as an access to their messages.
    """
    # As JSON represents it, and as browsers and other clients encode it.
    written = {
        reading
        for id in person.user_ids
        for reading in (dumps(id)[1:-1], quote_plus(id), quote(id), quote(id, safe=""))
    } | {dumps(thread)[1:-1] for thread in person.threads}
    about: dict[int, bool] = {}
    # A person who returned after an erasure is in the log under the pseudonym.
    users = [*person.user_ids, *names]
    for id, is_theirs in fetch_all(
        _EVENTS, person.parameters(users=users, written=sorted(written))
    ):
        about[id] = about.get(id, False) or is_theirs
    # Rows that named the person and were deleted before.
    names_person, subjects = person.matcher, {"subjects": subjects_with_texts()}
    about |= {id: True for id, text in stream(_WITH_TEXTS, subjects, BATCH) if names_person(text)}
    return about


def _pseudonymize_events(
    ids: Sequence[int], about: dict[int, bool], names: Pseudonyms, progress: ErasureProgress
) -> None:
    """Pseudonymize a batch of the access log."""
    with transaction.atomic():
        changed = []
        for event in AccessEvent.objects.select_for_update().filter(pk__in=ids):
            before = {name: getattr(event, name) for name in _COLUMNS}
            user_fields = {"subject_id"} if event.subject in USER_SUBJECTS else set()
            after = without_person(
                before, names, is_theirs=about[event.pk], user_fields=user_fields
            )
            is_of_theirs = about[event.pk] and event.action != Action.ERASE
            if (
                is_of_theirs
                and after["subject_id"]
                and after["subject_id"] not in names.users.values()
            ):
                after["subject_id"] = ERASED
            if after != before:
                vars(event).update(after)
                changed.append(event)
        AccessEvent.objects.bulk_update(changed, _COLUMNS)
        progress.add_rows(AccessEvent._meta.db_table, None, len(changed), "changed")
        progress.save()


def _redact_log_entries(ids: Sequence[int], progress: ErasureProgress) -> None:
    """Remove the names of the person's rows from Django's admin log."""
    with transaction.atomic():
        entries = list(LogEntry.objects.select_for_update().filter(pk__in=ids))
        for entry in entries:
            entry.object_id, entry.object_repr = None, ERASED
            entry.change_message = change_message_without_names(entry.change_message)
        LogEntry.objects.bulk_update(entries, ["object_id", "object_repr", "change_message"])
        progress.add_rows(LogEntry._meta.db_table, None, len(entries), "changed")
        progress.save()


def _batches(ids: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for start in range(0, len(ids), BATCH):
        yield tuple(ids[start : start + BATCH])


def without_person(
    event: Mapping[str, Any], names: Pseudonyms, *, is_theirs: bool, user_fields: set[str]
) -> dict[str, Any]:
    """Return the columns of an event of the access log without the person.

    Args:
        event: `user_id`, `subject_id`, `request_id` and `detail`.
        names: the ids and their pseudonyms.
        is_theirs: whether the event is about the person. Then texts in its details are replaced by
            a marker.
        user_fields: names of further fields for ids of users.
    """
    text = dumps(event)
    hits = [
        (match.start, match.stop, names.users[match.id])
        for match in id_candidates(text, user_fields=user_fields)
        if match.id in names.users and (names.everywhere or match.in_user_field)
    ]
    changed: dict[str, Any] = json.loads(replace_spans(text, hits))
    changed["detail"] = _without_texts("", changed["detail"], names, is_theirs=is_theirs)
    return changed


def _without_texts(name: str, value: Any, names: Pseudonyms, *, is_theirs: bool) -> Any:
    if isinstance(value, Mapping):
        if is_theirs and name not in _NESTED:
            return ERASED  # names of fields, such as those of metadata, are erased too
        return {key: _without_texts(key, value[key], names, is_theirs=is_theirs) for key in value}
    if isinstance(value, list):
        return [_without_texts(name, item, names, is_theirs=is_theirs) for item in value]
    if not isinstance(value, str) or not value or value in names.users.values():
        return value
    is_text = is_theirs and name not in _KEPT
    is_thread = name in _THREADS and value in names.threads
    return ERASED if is_text or is_thread else value


def change_message_without_names(message: str) -> str:
    """Return the message of Django's admin log without the names of the person's rows.

    Pseudonyms of fields stay.
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
                kind: {**detail, "object": ERASED} if "object" in detail else detail
                for kind, detail in change.items()
                if isinstance(detail, dict)
            }
        )
    return json.dumps(kept)
