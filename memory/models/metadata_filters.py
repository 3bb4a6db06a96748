"""Filters of metadata, and the values of metadata that they compare. Pure.

A filter names a value by its path, and gives a condition:

    {"topic": "food"}                        equal
    {"topic": {"in": ["food", "drink"]}}     one of them
    {"source.url": {"exists": True}}         present (the key of an inner object follows a dot)
    {"priority": {"gte": 2, "lt": 5}}        in a range: numbers as numbers, texts by code point

All conditions must be fulfilled; for a list, each by at least one element.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from memory.exceptions import InvalidArgument

# A b-tree takes entries of up to 2,704 bytes. Of a longer text, its beginning and its digest.
MAX_TEXT_CHARACTERS: Final = 512
MAX_KEY_CHARACTERS: Final = 512
MAX_VALUES: Final = 256
# Repeated values count too, since each is read with its path.
MAX_ITEMS: Final = 4_096
# Each condition is a sub-query.
MAX_CONDITIONS: Final = 32
MAX_DEPTH: Final = 16
RANGES: Final = ("gt", "gte", "lt", "lte")

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Value:
    """A scalar as the table of attributes stores it."""

    kind: str  # text, number, literal (true, false, null), object or list
    text: str | None = None
    number: float | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the value at a path: exists, in or a range operator."""

    key: str
    operator: str
    values: tuple[Value, ...] = ()


def metadata_values(metadata: Mapping[str, Any]) -> list[tuple[str, Value]]:
    """Return every value in metadata with its path, each once.

    Raises:
        InvalidArgument: the metadata is no JSON object, or too large.
    """
    if not isinstance(metadata, Mapping):
        raise InvalidArgument(f"metadata={metadata!r} is not an object")
    found: dict[tuple[str, Value], None] = {}
    for number, item in enumerate(_walk("", metadata, 0), start=1):
        found[item] = None
        if len(found) > MAX_VALUES:
            raise InvalidArgument(f"metadata has more than {MAX_VALUES} values; leave some out")
        if number > MAX_ITEMS:
            raise InvalidArgument(
                f"metadata has more than {MAX_ITEMS} items, repeated ones counted; leave some out"
            )
    return list(found)


def parse_filters(filters: Mapping[str, Any]) -> list[Condition]:
    """Return the conditions of a filter.

    Raises:
        InvalidArgument: an operator is unknown, or a value is invalid for it.
    """
    if not isinstance(filters, Mapping):
        raise InvalidArgument(f"filters={filters!r} is not an object")
    conditions: list[Condition] = []
    for key, condition in filters.items():
        if len(conditions) > MAX_CONDITIONS:
            break
        path = _key(key, "filters")
        if not isinstance(condition, Mapping):
            conditions.append(Condition(path, "in", (_value(path, condition),)))
            continue
        if not condition:
            raise InvalidArgument(f"filters[{path!r}] is empty: it has no condition")
        conditions += [_condition(path, operator, condition[operator]) for operator in condition]
    if len(conditions) > MAX_CONDITIONS:
        raise InvalidArgument(
            f"filters has more than {MAX_CONDITIONS} conditions; search with fewer"
        )
    return conditions


def _condition(path: str, operator: str, operand: Any) -> Condition:
    if operator == "eq":
        return Condition(path, "in", (_value(path, operand),))
    if operator == "in":
        if not isinstance(operand, list | tuple | set | frozenset):
            raise InvalidArgument(f"filters[{path!r}]['in']={operand!r} is not a list")
        if len(operand) > MAX_VALUES:
            raise InvalidArgument(
                f"filters[{path!r}]['in'] has {len(operand)} values; at most {MAX_VALUES} can be"
            )
        return Condition(path, "in", tuple(_value(path, item) for item in operand))
    if operator == "exists":
        if not isinstance(operand, bool):
            raise InvalidArgument(f"filters[{path!r}]['exists']={operand!r} is not true or false")
        return Condition(path, "exists" if operand else "missing")
    if operator in RANGES:
        bound = _value(path, operand)
        if bound.kind == "literal":
            raise InvalidArgument(f"filters[{path!r}][{operator!r}]={operand!r} has no order")
        return Condition(path, operator, (bound,))
    known = ", ".join(("eq", "in", "exists", *RANGES))
    raise InvalidArgument(f"filters[{path!r}] knows no operator {operator!r}; use one of: {known}")


def _walk(path: str, value: Any, depth: int) -> Iterator[tuple[str, Value]]:
    if depth > MAX_DEPTH:
        raise InvalidArgument(f"metadata is nested deeper than {MAX_DEPTH} at {path[:80]!r}")
    if isinstance(value, Mapping):
        if path:
            yield _shorten(path), Value("object")
        for key, inner in value.items():
            name = _key(key, "metadata")
            yield from _walk(f"{path}.{name}" if path else name, inner, depth + 1)
    elif isinstance(value, list | tuple):
        yield _shorten(path), Value("list")
        for inner in value:
            yield from _walk(path, inner, depth + 1)
    else:
        yield _shorten(path), _value(path, value)


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str) or not key:
        raise InvalidArgument(f"{where} has the key {key!r}, which is not text or empty")
    _require_storable(key, key)
    if where == "metadata" and len(key) > MAX_KEY_CHARACTERS:
        raise InvalidArgument(
            f"metadata has the key {key[:80]!r}…, which is longer than {MAX_KEY_CHARACTERS}"
            " characters"
        )
    return key if where == "metadata" else _shorten(key)


def _value(path: str, value: Any) -> Value:
    if isinstance(value, bool) or value is None:
        return Value("literal", text={True: "true", False: "false", None: "null"}[value])
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise InvalidArgument(f"{path[:80]}={value!r} is not a finite number")
        return Value("number", number=number)
    if isinstance(value, str):
        _require_storable(path, value)
        return Value("text", text=_shorten(value))
    raise InvalidArgument(f"{path[:80]}={value!r} is not one of text, number, true, false and null")


def _require_storable(path: str, text: str) -> None:
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidArgument(
            f"{path[:80]!r} holds a NUL character or half of a surrogate pair; remove it"
        )


def _shorten(text: str) -> str:
    content = text.encode()
    if len(content) <= MAX_TEXT_CHARACTERS:
        return text
    beginning = content[:MAX_TEXT_CHARACTERS].decode(errors="ignore")
    return f"{beginning}#{hashlib.sha256(content).hexdigest()}"
