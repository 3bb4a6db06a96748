"""Finds rows of the team whose texts name an erased person, such as saved questions.

A text names a person by an id, or by a name that no other person of the tenant has, as whole words.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from django.db.models import Q

from konstruct.orchestrator.models import ChannelIdentity
from memory.models import PersonName
from memory.text.folding import fold
from tenants import transaction
from tenants.audit.pseudonyms import is_distinctive
from tenants.context import connection
from tenants.personal_data import personal_tables

# The number of rows in memory at a time.
BATCH: Final = 200
# Shorter names are ignored, because they are words of many texts.
MIN_NAME_CHARACTERS: Final = 3
_WORD: Final = re.compile(r"[^\W_]+")


def unique_names(user_ids: Sequence[str]) -> tuple[str, ...]:
    """Return the names that no other person has, as words without case and accents."""
    accounts, person_names = ChannelIdentity.objects.exclude(name=""), PersonName.objects.all()
    of_person = Q(user_id__in=user_ids) | Q(own_id__in=user_ids)
    own_names = person_names.filter(user_id__in=user_ids).values_list("name", flat=True)
    account_names = accounts.filter(of_person).values_list("name", flat=True)
    names = {fold(name) for name in (*own_names, *account_names)}
    others = person_names.filter(folded__in=names).exclude(user_id__in=user_ids)
    names.difference_update(others.values_list("folded", flat=True))
    names.difference_update(map(fold, accounts.exclude(of_person).values_list("name", flat=True)))
    normalized = {" ".join(split_words(name)) for name in names}
    return tuple(sorted(name for name in normalized if len(name) >= MIN_NAME_CHARACTERS))


def split_words(text: str) -> list[str]:
    """Return the words of a text without case and accents."""
    return _WORD.findall(text.casefold() if text.isascii() else fold(text))


def contains_name(words: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether the words contain one of the names. Both are without case and accents."""
    text = f" {' '.join(words)} " if names else ""
    return any(f" {name} " in text for name in names)


def pattern_of_ids(user_ids: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds an id as a word, also as JSON escapes it."""
    written = {form for id in user_ids for form in (id, json.dumps(id)[1:-1])}
    written |= {json.dumps(id, ensure_ascii=False)[1:-1] for id in user_ids}
    return re.compile("|".join(rf"(?<![^\W_]){re.escape(form)}(?![^\W_])" for form in written))


class PersonMatcher:
    """Checks whether a text names a person. An instance is called with a text."""

    def __init__(self, user_ids: Iterable[str], names: Sequence[str]) -> None:
        ids = [id for id in user_ids if is_distinctive(id)]
        self._ids = pattern_of_ids(ids) if ids else None
        self._names = names

    def __call__(self, text: str) -> bool:
        """Return whether the text contains an id or a name."""
        has_id = self._ids is not None and self._ids.search(text) is not None
        return has_id or contains_name(split_words(text), self._names)


def rows_naming_person(matcher: PersonMatcher, agent_id: UUID | None) -> Iterator[str]:
    """Yield the ids of the rows whose texts name a person, in tables that declare such texts.

    Args:
        matcher: the matcher of the person.
        agent_id: only rows of this agent; None: all rows.
    """
    for table, data in personal_tables().items():
        if not data.named_in:
            continue
        where = f"{data.agent} = %(agent)s OR %(agent)s::uuid IS NULL"
        texts = ", ".join(f"{column}::text" for column in data.named_in)
        statement = f"SELECT {data.key}::text, concat_ws(' ', {texts}) FROM {table} WHERE {where}"
        for key, text in stream(statement, {"agent": agent_id}, BATCH):
            if matcher(text):
                yield key


def stream(statement: str, values: dict[str, Any], batch: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement. At most `batch` rows are in memory at a time."""
    # Postgres keeps a cursor only in a transaction.
    with transaction.atomic(), connection.chunked_cursor() as cursor:
        cursor.execute(statement, values)
        while rows := cursor.fetchmany(batch):
            yield from rows
