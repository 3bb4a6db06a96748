"""The record of who did what: it stays when a person is erased, and does not name them any more."""

from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote, quote_plus

from django.contrib.admin.models import LogEntry

from konstruct.api.models import IdempotencyRecord
from konstruct.audit.models import AccessEvent, Action
from konstruct.audit.pseudonyms import pseudonym
from konstruct.privacy.erasure.person import IDS, OF_PERSON, Person
from konstruct.privacy.erasure.progress import ErasureProgress
from konstruct.privacy.erasure.stores.scrubbing import (
    ERASED,
    Names,
    scrubbed_change_message,
    scrubbed_detail,
)
from tenants import transaction
from tenants.context import connection

BATCH = 1000

# Each is one look at the table, by equality: joins and arrays, no patterns.
_EVENTS: Final = f"""
    SELECT id, true FROM audit_accessevent WHERE {OF_PERSON}
    UNION
    SELECT event.id, true FROM audit_accessevent AS event JOIN ({IDS}) AS theirs
      ON theirs.id = event.subject_id
    UNION
    SELECT id, true FROM audit_accessevent
    WHERE subject = 'session' AND subject_id = ANY(%(sessions)s)
    UNION
    SELECT id, false FROM audit_accessevent
    WHERE %(agent)s::uuid IS NULL AND (
      jsonb_path_query_array(detail, 'strict $.** ? (@.type() == "string")')
        ?| (%(users)s::text[] || %(threads)s::text[])
      OR string_to_array(translate(detail ->> 'address', '=', '&'), '&') && %(in_address)s::text[]
      OR subject = 'person' AND subject_id = ANY(%(users)s)
    )
"""
_LOGGED: Final = f"""
    SELECT entry.id FROM django_admin_log AS entry JOIN ({IDS}) AS theirs
      ON theirs.id = entry.object_id
"""
_CREATED: Final = f"""
    DELETE FROM api_creation USING ({IDS}) AS theirs
    WHERE made::text = theirs.id RETURNING made::text
"""


def forget(person: Person, progress: ErasureProgress) -> None:
    """Take the person out of the record: entries stay, ids become pseudonyms, texts markers.

    What an Idempotency-Key stands for goes with what it made.
    """
    names = Names(
        {user_id: pseudonym(user_id) for user_id in person.user_ids}, frozenset(person.threads)
    )
    about = _events(person)
    for ids in _batches(sorted(about)):
        _forget_events(ids, about, names, progress)
    for ids in _batches(_logged(person)):
        _forget_log_entries(ids, progress)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_CREATED, person.parameters())
        made = [id for (id,) in cursor.fetchall()]
        progress.add_rows(IdempotencyRecord._meta.db_table, made, len(made), "removed")
        progress.save()


def _events(person: Person) -> dict[int, bool]:
    """Entries that may name the person, and whether they are about them."""
    # As a browser has encoded it, or another client.
    quoted = {each(user_id) for user_id in person.user_ids for each in (quote_plus, quote)}
    about: dict[int, bool] = {}
    with connection.cursor() as cursor:
        cursor.execute(_EVENTS, person.parameters(in_address=sorted(quoted)))
        for id, is_theirs in cursor.fetchall():
            about[id] = about.get(id, False) or is_theirs
    return about


def _logged(person: Person) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(_LOGGED, person.parameters())
        return sorted({id for (id,) in cursor.fetchall()})


def _forget_events(
    ids: Sequence[int], about: dict[int, bool], names: Names, progress: ErasureProgress
) -> None:
    """Rewrite a batch of the access log, where there is something to replace."""
    with transaction.atomic():
        changed = []
        for event in AccessEvent.objects.select_for_update().filter(pk__in=ids):
            is_theirs = about[event.pk]
            user_id = names.users.get(event.user_id or "", event.user_id)
            detail = scrubbed_detail(
                event.detail, names, subject=event.subject, is_theirs=is_theirs
            )
            subject_id = _subject_id(event, names, is_theirs=is_theirs)
            if (user_id, subject_id, detail) != (event.user_id, event.subject_id, event.detail):
                event.user_id, event.subject_id, event.detail = user_id, subject_id, detail
                changed.append(event)
        AccessEvent.objects.bulk_update(changed, ["user_id", "subject_id", "detail"])
        progress.add_rows(AccessEvent._meta.db_table, None, len(changed), "changed")
        progress.save()


def _subject_id(event: AccessEvent, names: Names, *, is_theirs: bool) -> str:
    if event.subject == "person" and event.subject_id in names.users:
        return names.users[event.subject_id]
    # What an erasure was asked for by is its receipt's id.
    if not is_theirs or not event.subject_id or event.action == Action.ERASE:
        return event.subject_id
    return ERASED


def _forget_log_entries(ids: Sequence[int], progress: ErasureProgress) -> None:
    """Take the names of things that were the person's out of Django's admin log."""
    with transaction.atomic():
        entries = list(LogEntry.objects.select_for_update().filter(pk__in=ids))
        for entry in entries:
            entry.object_id, entry.object_repr = None, ERASED
            entry.change_message = scrubbed_change_message(entry.change_message)
        LogEntry.objects.bulk_update(entries, ["object_id", "object_repr", "change_message"])
        progress.add_rows(LogEntry._meta.db_table, None, len(entries), "changed")
        progress.save()


def _batches(ids: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for start in range(0, len(ids), BATCH):
        yield tuple(ids[start : start + BATCH])
