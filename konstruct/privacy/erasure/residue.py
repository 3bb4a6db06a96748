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
_THEIRS: Final = f"""
    SELECT content FROM memory_message WHERE {OF_PERSON} AND role = 'user'
    ORDER BY md5(id::text) LIMIT {MAX_MESSAGES}
"""
_OF_OTHERS: Final = """
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
    theirs = [split_words(content) for content in fetch_column(_THEIRS, person.parameters())]
    frequency = Counter(
        word
        for (text,) in fetch_all(
            f"{_OF_OTHERS} ORDER BY number DESC LIMIT {MAX_SAMPLED}", person.parameters()
        )
        for word in set(split_words(text))
    )
    candidates = [
        sorted(
            dict.fromkeys(_sequences(spoken)),
            key=lambda sequence: sum(1 / (1 + frequency[word]) for word in sequence.split()),
            reverse=True,
        )[:CANDIDATES_PER_MESSAGE]
        for spoken in theirs
    ]
    common = {sequence for sequences in candidates for sequence in sequences}
    rare = set(common)
    for content, *_ in stream(_OF_OTHERS, person.parameters(), BATCH):
        rare.difference_update(_sequences(split_words(content)))
    chosen = [
        [sequence for sequence in message if sequence in rare][:SEQUENCES_PER_MESSAGE]
        for message in candidates
    ]
    key = _key(request)
    digests = {_digest(key, sequence) for message in chosen for sequence in message}
    return {"messages": sum(map(bool, chosen)), "digests": sorted(digests)}


def find_residue(person: Person, request: ErasureRequest, chosen: dict[str, Any]) -> dict[str, Any]:
    """Read every text, JSON and bytes of the tenant, and count values with ids or words.

    Rows of the person are skipped: an erasure for one agent leaves those of other agents.

    Returns:
        `ids`: rows that mention an id, by table. `names`: values that hold a name that only the
        person had, by table and column. `words`: values that hold a chosen sequence, by
        table and column. `messages` and `sequences`: how many were chosen. `values`: how many were
        read. `seconds`: how long it took.
    """
    began, key, digests = time.monotonic(), _key(request), set(chosen["digests"])
    ids, names, found, values = Counter[str](), Counter[str](), Counter[str](), 0
    is_id, called = pattern_of_ids(person.user_ids), person.names or ()
    for (schema, table), columns in _tables().items():
        read = [
            name for name, kind in columns.items() if kind in (*TEXT_TYPES, *JSON_TYPES, "bytea")
        ]
        if not read:
            continue
        shown = [f'"{name}"' + ("" if columns[name] == "bytea" else "::text") for name in read]
        where = "WHERE tenant_id = %(tenant)s" if schema == "public" else ""
        has_bytes = "bytea" in columns.values()
        rows = stream(
            f'SELECT {", ".join(shown)} FROM "{schema}"."{table}" {where}',
            person.parameters(),
            BATCH_OF_BYTES if has_bytes else BATCH,
        )
        for row in rows:
            cells = dict(zip(read, row, strict=True))
            if not {cells.get(name) for name in _USER_COLUMNS}.isdisjoint(person.user_ids):
                continue
            has_id = False
            for name, cell in cells.items():
                if not cell:
                    continue
                values += 1
                text = bytes(cell).decode(errors="replace") if columns[name] == "bytea" else cell
                has_id = has_id or is_id.search(text) is not None
                # JSON escapes quotes and line breaks.
                text = _ESCAPES.sub(" ", text) if columns[name] in JSON_TYPES else text
                spoken = split_words(text) if digests or called else []
                names[f"{table}.{name}"] += contains_name(spoken, called)
                if digests and any(
                    _digest(key, sequence) in digests for sequence in _sequences(spoken)
                ):
                    found[f"{table}.{name}"] += 1
            ids[table] += has_id
    return {
        "ids": dict(+ids),
        "names": dict(+names),
        "words": dict(found),
        "messages": chosen["messages"],
        "sequences": len(digests),
        "values": values,
        "seconds": round(time.monotonic() - began, 3),
    }


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


def _sequences(spoken: list[str]) -> Iterator[str]:
    return (
        " ".join(spoken[start : start + WORDS_PER_SEQUENCE])
        for start in range(len(spoken) - WORDS_PER_SEQUENCE + 1)
    )


def _key(request: ErasureRequest) -> bytes:
    """Return the key of this erasure. It is not stored."""
    return salted_hmac("konstruct.privacy.erasure", str(request.pk), algorithm="sha256").digest()


def _digest(key: bytes, sequence: str) -> str:
    return hmac.digest(key, sequence.encode(), "sha256")[:16].hex()
