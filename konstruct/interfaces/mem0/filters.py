"""mem0's language of filters, taken apart and checked. Pure.

    {"user_id": "alex", "metadata": {"topic": "food"}}          all must hold
    {"AND": [{"user_id": "alex"}, {"run_id": "*"}]}             "*" is any, but not none
    {"OR": [{"agent_id": "ada"}, {"user_id": {"in": ["a", "b"]}}]}
    {"user_id": "alex", "NOT": [{"categories": {"contains": "spam"}}]}

Of a NOT's list, none may hold. `ne` holds of what has no such value, too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from memory.arguments import id_argument, text_argument, uuid_argument
from memory.exceptions import InvalidArgument
from memory.models.fact_filters import RANGES, parse_filters

ENTITIES: Final = ("user_id", "agent_id", "app_id", "run_id")
# Entities that a fact has no column for: they stand in its metadata, under the same name.
IN_METADATA: Final = ("app_id", "run_id")
TIMES: Final = ("created_at", "updated_at", "timestamp")
FIELDS: Final = (*ENTITIES, *TIMES, "categories", "keywords", "memory_ids", "metadata")
COMBINATIONS: Final = ("AND", "OR", "NOT")
WILDCARD: Final = "*"
# Each condition is a sub-query of its own, and each list a part of the statement.
MOST_CONDITIONS: Final = 32
MOST_VALUES: Final = 256
DEEPEST: Final = 8
LONGEST_KEYWORD: Final = 512

_OF_ENTITIES: Final = ("eq", "ne", "in")
_OF_TIMES: Final = ("eq", "ne", *RANGES)
_OF_METADATA: Final = ("eq", "ne", "in", *RANGES, "contains", "icontains")
_OF_CATEGORIES: Final = ("eq", "ne", "in", "contains", "icontains")
_OF_KEYWORDS: Final = ("contains", "icontains")


@dataclass(frozen=True, slots=True)
class Demand:
    """What one field must be.

    `field` is a name of `FIELDS`, or `metadata.` and a path. `operator` is eq, ne, in, gt, gte, lt,
    lte, contains, icontains, or any for the wildcard. `values` are ids as text, moments, UUIDs,
    or what metadata can hold; an eq of None is "has none".
    """

    field: str
    operator: str
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Combination:
    """AND, OR or NOT of parts. A NOT holds if none of its parts does; an empty AND always."""

    kind: str
    parts: tuple["Filter", ...]


Filter = Demand | Combination
EVERYTHING: Final = Combination("AND", ())


def parse(filters: Any) -> Filter:
    """Take filters apart.

    Raises:
        InvalidArgument: they are not of the language; the message names what, and what would be.
    """
    tree = _object(filters, "filters", depth=1)
    conditions = sum(1 for _ in demands(tree))
    if conditions > MOST_CONDITIONS:
        raise InvalidArgument(
            f"filters has {conditions} conditions; at most {MOST_CONDITIONS} can be"
        )
    return tree


def demands(tree: Filter) -> Iterator[Demand]:
    """Every condition in a filter."""
    if isinstance(tree, Demand):
        yield tree
    else:
        for part in tree.parts:
            yield from demands(part)


def names_an_entity(tree: Filter) -> bool:
    """Whether a filter says anything of whose memories are meant."""
    return any(demand.field in ENTITIES for demand in demands(tree))


def is_confined(tree: Filter) -> bool:
    """Whether all that a filter can find belongs to users, agents, apps or runs that it names."""
    if isinstance(tree, Demand):
        return tree.field in ENTITIES and tree.operator in ("eq", "in") and None not in tree.values
    if tree.kind == "AND":
        return any(is_confined(part) for part in tree.parts)
    return tree.kind == "OR" and bool(tree.parts) and all(is_confined(part) for part in tree.parts)


def the_one(tree: Filter, field: str) -> str | None:
    """The one value of a field that all that a filter finds must have; None if there is none."""
    if isinstance(tree, Demand):
        is_it = tree.field == field and tree.operator == "eq"
        return tree.values[0] if is_it else None
    if tree.kind != "AND":
        return None
    return next((one for part in tree.parts if (one := the_one(part, field)) is not None), None)


def _object(filters: Any, where: str, depth: int) -> Filter:
    """All of an object's members must hold."""
    if not isinstance(filters, Mapping):
        raise InvalidArgument(f"{where}={_shown(filters)} is not an object")
    if depth > DEEPEST:
        raise InvalidArgument(f"filters is nested deeper than {DEEPEST} levels")
    parts = [part for name in filters for part in _member(name, filters[name], depth)]
    return parts[0] if len(parts) == 1 else Combination("AND", tuple(parts))


def _member(name: str, value: Any, depth: int) -> Iterator[Filter]:
    if name in COMBINATIONS:
        # mem0 takes a NOT of one condition without brackets.
        parts = [value] if name == "NOT" and isinstance(value, Mapping) else value
        if not isinstance(parts, list) or not parts:
            raise InvalidArgument(f"filters[{name!r}]={_shown(value)} is not a list of conditions")
        if len(parts) > MOST_CONDITIONS:
            raise InvalidArgument(
                f"filters[{name!r}] has {len(parts)} conditions; at most {MOST_CONDITIONS} can be"
            )
        inner = tuple(_object(part, f"filters[{name!r}]", depth + 1) for part in parts)
        if any(part == EVERYTHING for part in inner):
            raise InvalidArgument(f"filters[{name!r}] holds an empty condition")
        yield Combination(name, inner)
    elif name == "memory_ids":
        ids = value["in"] if isinstance(value, Mapping) and [*value] == ["in"] else value
        yield Demand(name, "in", tuple(_memory_id(each) for each in _list(name, ids)))
    elif name == "metadata":
        if not isinstance(value, Mapping) or not value:
            raise InvalidArgument(f"filters['metadata']={_shown(value)} is not an object of values")
        for key, wanted in value.items():
            parse_filters({key: {"exists": True}})
            yield from _conditions(f"metadata.{key}", wanted, _OF_METADATA)
    elif name in ENTITIES:
        yield from _conditions(name, value, _OF_ENTITIES)
    elif name in TIMES:
        yield from _conditions(name, value, _OF_TIMES)
    elif name == "categories":
        yield from _conditions(
            name, {"in": value} if isinstance(value, list) else value, _OF_CATEGORIES
        )
    elif name == "keywords":
        yield from _conditions(
            name, {"icontains": value} if isinstance(value, str) else value, _OF_KEYWORDS
        )
    else:
        known = ", ".join((*COMBINATIONS, *FIELDS))
        raise InvalidArgument(
            f"filters knows no field {name[:80]!r}; use one of: {known}. A value of yours stands"
            " under metadata"
        )


def _conditions(field: str, wanted: Any, operators: tuple[str, ...]) -> Iterator[Demand]:
    """The conditions on a field: equality without an operator, else each operator."""
    if not isinstance(wanted, Mapping):
        if wanted == WILDCARD:
            yield Demand(field, "any")
            return
        wanted = {"eq": wanted}
    if not wanted:
        raise InvalidArgument(f"filters[{field[:80]!r}] is empty: it says nothing to look for")
    for operator, operand in wanted.items():
        if operator not in operators:
            raise InvalidArgument(
                f"filters[{field[:80]!r}] knows no operator {operator[:80]!r};"
                f" use one of: {', '.join(operators)}"
            )
        if operator == "eq" and operand == WILDCARD:
            yield Demand(field, "any")
            continue
        operands = _list(field, operand) if operator == "in" else [operand]
        yield Demand(field, operator, tuple(_value(field, operator, each) for each in operands))


def _value(field: str, operator: str, value: Any) -> Any:
    if operator in ("contains", "icontains"):
        return _keyword(field, value)
    if field in ENTITIES:
        return None if value is None and operator == "eq" else id_argument(field, value)
    if field in TIMES:
        return moment(field, value)
    path = field.removeprefix("metadata.")
    parse_filters({path: {operator: value} if operator in RANGES else value})
    return value


def _keyword(field: str, value: Any) -> str:
    text = text_argument(field, value)
    if not 0 < len(text) <= LONGEST_KEYWORD:
        raise InvalidArgument(
            f"filters[{field[:80]!r}] looks for {len(text)} characters; give 1 to {LONGEST_KEYWORD}"
        )
    return text


def _memory_id(value: Any) -> UUID:
    return uuid_argument("memory_ids", value if isinstance(value, str) else repr(value)[:80])


def _list(field: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidArgument(f"filters[{field[:80]!r}]={_shown(value)} is not a list")
    if len(value) > MOST_VALUES:
        raise InvalidArgument(
            f"filters[{field[:80]!r}] has {len(value)} values; at most {MOST_VALUES} can be"
        )
    return value


def moment(field: str, value: Any) -> datetime:
    """A moment: a day, a time (UTC unless it says otherwise), or seconds since 1970.

    Raises:
        InvalidArgument: it is none of these.
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        read = datetime.fromisoformat(value)
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, OSError):
        raise InvalidArgument(
            f"{field}={_shown(value)} is no time; give one like 2026-03-14T09:30:00Z, a day, or"
            " seconds since 1970"
        ) from None


def _shown(value: Any) -> str:
    """A value in a message; of a long one its beginning."""
    if isinstance(value, dict | list):
        return f"{type(value).__name__} of {len(value)}"
    return ascii(value)[:80]
