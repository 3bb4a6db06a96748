"""The search for residue of an erased person: their rows, their ids, and their words.

Before messages are removed, `choose_sequences` selects sequences of three words that no other
person has written. The progress stores keyed digests of them. Afterwards `find_residue` reads every
column with text, JSON or bytes, and counts the values that contain an id or such a sequence.
"""

import hmac
import re
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from django.utils.crypto import salted_hmac

from konstruct.privacy.erasure.person import OF_PERSON, Person
from konstruct.privacy.erasure.person_matcher import (
    contains_name,
    pattern_of_ids,
    split_words,
    stream,
)
from tenants.audit.models import ErasureRequest
from tenants.context import fetch_all, fetch_column, fetch_value, tenant_connection

RECEIPTS_TABLE = ErasureRequest._meta.db_table
# The maximum number of messages from which sequences are chosen, and of sequences of each.
MAX_MESSAGES: Final = 100
SEQUENCES_PER_MESSAGE: Final = 2
# The number of rare sequences of a message that are compared with the messages of others.
CANDIDATES_PER_MESSAGE: Final = 8
# The number of the newest messages of others, by which the frequency of a word is estimated.
MAX_SAMPLED: Final = 2_000
WORDS_PER_SEQUENCE: Final = 3
# Rows in memory at a time: a trace of a recall takes tens of kilobytes, a value of bytes megabytes.
BATCH: Final = 25
BATCH_OF_BYTES: Final = 8
TEXT_TYPES: Final = ("text", "character varying", "text[]", "character varying[]")
JSON_TYPES: Final = ("jsonb", "json")
# Columns that hold a user's id, in any table.
_USER_COLUMNS: Final = ("user_id", "own_id", "from_user")
_COLUMNS: Final = """
    SELECT nspname, relname, attname, format_type(atttypid, NULL) FROM pg_attribute
    JOIN pg_class ON pg_class.oid = attrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped AND (
        nspname = %(schema)s
        OR nspname = 'public' AND EXISTS (
            SELECT FROM pg_attribute AS owner
            WHERE owner.attrelid = pg_class.oid AND owner.attname = 'tenant_id'))
    ORDER BY nspname, relname, attnum
"""
_MESSAGES_OF_PERSON: Final = f"""
    SELECT content FROM memory_message WHERE {OF_PERSON} AND role = 'user'
    ORDER BY md5(id::text) LIMIT {MAX_MESSAGES}
"""
_MESSAGES_OF_OTHERS: Final = """
    SELECT content FROM memory_message WHERE user_id <> ALL(%(users)s) AND role = 'user'
"""
_ESCAPES: Final = re.compile(r'\\[bfnrt"\\/]')


def count_remaining(person: Person) -> dict[str, int]:
    """Return the numbers of rows with an id of the person, by table."""
    found = {}
    for (schema, table), columns in _tables().items():
        conditions = _conditions(columns)
        if table != RECEIPTS_TABLE and conditions:
            where = f"tenant_id = %(tenant)s AND ({' OR '.join(conditions)})"
            statement = f"SELECT count(*) FROM {schema}.{table} WHERE {where}"
            if count := int(fetch_value(statement, person.parameters())):
                found[table] = count
    return found


def choose_sequences(person: Person, request: ErasureRequest) -> dict[str, Any]:
    """Return keyed digests of sequences of words that only the person has written.

    Returns:
        `messages`: the number of messages with such a sequence; `digests`: the digests.
    """
    parameters, key = person.parameters(), _key(request)
    frequency: Counter[str] = Counter()
    newest = f"{_MESSAGES_OF_OTHERS} ORDER BY number DESC LIMIT {MAX_SAMPLED}"
    for content in fetch_column(newest, parameters):
        frequency.update(set(split_words(content)))

    def rarity(sequence: str) -> float:
        return sum(1 / (1 + frequency[word]) for word in sequence.split())

    candidates = []
    for content in fetch_column(_MESSAGES_OF_PERSON, parameters):
        sequences = dict.fromkeys(_sequences(split_words(content)))
        candidates.append(sorted(sequences, key=rarity, reverse=True)[:CANDIDATES_PER_MESSAGE])
    unique = set(chain.from_iterable(candidates))
    for content, *_ in stream(_MESSAGES_OF_OTHERS, parameters, BATCH):
        unique.difference_update(_sequences(split_words(content)))
    messages, digests = 0, set[str]()
    for sequences_of_message in candidates:
        chosen = [each for each in sequences_of_message if each in unique][:SEQUENCES_PER_MESSAGE]
        messages += bool(chosen)
        digests.update(_digest(key, sequence) for sequence in chosen)
    return {"messages": messages, "digests": sorted(digests)}


def find_residue(person: Person, request: ErasureRequest, chosen: dict[str, Any]) -> dict[str, Any]:
    """Read every text, JSON and bytes of the tenant, and count values with ids or words.

    Rows of the person are skipped: an erasure for one agent leaves those of other agents.

    Returns:
        `ids`: rows that mention an id, by table. `names`: values that hold a name that only the
        person had, by table and column. `words`: values that hold a chosen sequence, by
        table and column. `messages` and `sequences`: how many were chosen. `values`: how many were
        read. `seconds`: how long it took.
    """
    started_at, key, digests = time.monotonic(), _key(request), set(chosen["digests"])
    ids, names, sequences, values = Counter[str](), Counter[str](), Counter[str](), 0
    id_pattern, person_names = pattern_of_ids(person.user_ids), person.names or ()
    for table, cells in _rows_of_others(person):
        has_id = False
        for column, text, is_json in cells:
            values += 1
            has_id = has_id or id_pattern.search(text) is not None
            if not (digests or person_names):
                continue
            # JSON escapes quotes and line breaks.
            words = split_words(_ESCAPES.sub(" ", text) if is_json else text)
            names[f"{table}.{column}"] += contains_name(words, person_names)
            if digests and any(_digest(key, each) in digests for each in _sequences(words)):
                sequences[f"{table}.{column}"] += 1
        ids[table] += has_id
    return {
        "ids": dict(+ids),
        "names": dict(+names),
        "words": dict(sequences),
        "messages": chosen["messages"],
        "sequences": len(digests),
        "values": values,
        "seconds": round(time.monotonic() - started_at, 3),
    }


def _rows_of_others(person: Person) -> Iterator[tuple[str, list[tuple[str, str, bool]]]]:
    """Yield the table and the cells of each row that does not belong to the person.

    A cell is the name of its column, its text, and whether it is JSON. Empty cells are left out.
    """
    for (schema, table), columns in _tables().items():
        types = {
            name: kind
            for name, kind in columns.items()
            if kind in (*TEXT_TYPES, *JSON_TYPES, "bytea")
        }
        if not types:
            continue
        selected = [f'"{name}"' + ("" if types[name] == "bytea" else "::text") for name in types]
        where = "WHERE tenant_id = %(tenant)s" if schema == "public" else ""
        rows = stream(
            f'SELECT {", ".join(selected)} FROM "{schema}"."{table}" {where}',
            person.parameters(),
            BATCH_OF_BYTES if "bytea" in types.values() else BATCH,
        )
        for row in rows:
            values = dict(zip(types, row, strict=True))
            if {values.get(name) for name in _USER_COLUMNS}.isdisjoint(person.user_ids):
                yield (
                    table,
                    [
                        (name, _text(value), types[name] in JSON_TYPES)
                        for name, value in values.items()
                        if value
                    ],
                )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else bytes(value).decode(errors="replace")


def _tables() -> dict[tuple[str, str], dict[str, str]]:
    """Return the types of columns by name, by schema and table."""
    tables: dict[tuple[str, str], dict[str, str]] = {}
    for schema, table, column, kind in fetch_all(
        _COLUMNS, {"schema": tenant_connection().schema_name}
    ):
        tables.setdefault((schema, table), {})[column] = kind
    return tables


def _conditions(columns: dict[str, str]) -> list[str]:
    agents = "%(agent)s::uuid IS NULL"
    if "agent_id" in columns:
        agents = f"({agents} OR agent_id = %(agent)s)"
    conditions = [
        f"({column} = ANY(%(users)s) AND {agents})"
        for column in _USER_COLUMNS
        if columns.get(column) in TEXT_TYPES
    ]
    if "scope_id" in columns:
        conditions.append("scope_id = ANY(%(scopes)s)")
    if "thread_id" in columns and "checkpoint_ns" in columns:
        conditions.append("thread_id = ANY(%(sessions)s)")
    return conditions


def _sequences(words: list[str]) -> Iterator[str]:
    """Yield all sequences of WORDS_PER_SEQUENCE words."""
    for start in range(len(words) - WORDS_PER_SEQUENCE + 1):
        yield " ".join(words[start : start + WORDS_PER_SEQUENCE])


def _key(request: ErasureRequest) -> bytes:
    """Return the key of this erasure. It is not stored."""
    return salted_hmac("konstruct.privacy.erasure", str(request.pk), algorithm="sha256").digest()


def _digest(key: bytes, sequence: str) -> str:
    return hmac.digest(key, sequence.encode(), "sha256")[:16].hex()
