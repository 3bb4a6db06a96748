"""Tables of the values of metadata, which b-trees index.

Postgres does not use a GIN index on the JSON itself under row-level security, because its operators
are not leakproof; those of text and double precision are.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from django.db import models

from memory.arguments import text_argument
from memory.exceptions import InvalidArgument
from tenants.models import TenantModel
from tenants.personal_data import PersonalData

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
PARTS: Final = ("contains", "icontains")
OPERATORS: Final = ("eq", "ne", "in", "exists", *RANGES, *PARTS)


@dataclass(frozen=True, slots=True)
class Value:
    """A scalar as the table of attributes stores it."""

    kind: str  # text, number, literal (true, false, null), object or list
    text: str | None = None
    number: float | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the value at a path: exists, missing, in, ne, or one of RANGES and PARTS."""

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
    """Return the conditions of a filter: `{"topic": "food", "priority": {"gte": 2}}`.

    All conditions must hold. `ne` also matches rows without a value. REST, mem0's interface, MCP
    and the Python API use this language.

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
    if operator in ("eq", "ne"):
        return Condition(path, "in" if operator == "eq" else "ne", (_value(path, operand),))
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
    if operator in PARTS:
        part = _value(path, operand)
        if part.kind != "text" or not part.text or part.text != operand:
            raise InvalidArgument(
                f"filters[{path!r}][{operator!r}] is not a text of 1 to {MAX_TEXT_CHARACTERS} bytes"
            )
        return Condition(path, operator, (part,))
    known = ", ".join(OPERATORS)
    raise InvalidArgument(
        f"filters[{path!r}] knows no operator {operator[:80]!r}; use one of: {known}"
    )


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
    text_argument(f"the key {key[:80]!r} of {where}", key)
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
        return Value("text", text=_shorten(text_argument(path[:80], value)))
    raise InvalidArgument(f"{path[:80]}={value!r} is not one of text, number, true, false and null")


def _shorten(text: str) -> str:
    content = text.encode()
    if len(content) <= MAX_TEXT_CHARACTERS:
        return text
    beginning = content[:MAX_TEXT_CHARACTERS].decode(errors="ignore")
    return f"{beginning}#{hashlib.sha256(content).hexdigest()}"


A = TypeVar("A", bound="Attribute")
Q = TypeVar("Q", bound="models.QuerySet[Any]")


class Attribute(TenantModel):
    """One value of the metadata of a row."""

    id = models.BigAutoField(primary_key=True)
    key = models.TextField(
        db_collation="C", help_text="Path of the value; the keys of inner objects follow a dot."
    )
    kind = models.TextField(help_text="text, number, literal (true, false, null), object or list.")
    text = models.TextField(  # noqa: DJ001  (null: a number; '' is a text)
        db_collation="C", null=True, help_text="A text (a long one abridged), or a literal."
    )
    number = models.FloatField(null=True, help_text="A number.")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.key} = {self.text if self.number is None else self.number}"


def attribute_indexes(of: str, name: str) -> list[models.Index]:
    """Return the indexes of attributes by texts and by numbers, for the rows of a foreign key."""
    numbers: dict[str, Any] = {
        "condition": models.Q(number__isnull=False),
        "name": f"{name}_number",
    }
    include = ["tenant_id"]
    return [
        models.Index(fields=["key", "kind", "text", of], include=include, name=f"{name}_text"),
        models.Index(fields=["key", "number", of], include=include, **numbers),
    ]


class MessageAttribute(Attribute):
    """One value of a message's metadata, indexed by a b-tree. Append-only."""

    message = models.ForeignKey(
        "memory.Message",
        on_delete=models.PROTECT,
        related_name="attributes",
        help_text="The message.",
    )

    # An archive has the metadata, from which the import makes these rows again.
    personal_data = PersonalData(message="message_id")

    class Meta:
        verbose_name = "message attribute"
        indexes = attribute_indexes("message", "message_attribute")


def attributes_of(model: type[A], metadata: Mapping[str, Any], **foreign_key: Any) -> list[A]:
    """Return unsaved attributes for the values of some metadata.

    Args:
        model: the class of the attributes.
        metadata: of a message or a fact.
        foreign_key: the foreign key of the attributes, such as `message_id=…`.
    """
    return [
        model(key=key, kind=value.kind, text=value.text, number=value.number, **foreign_key)
        for key, value in metadata_values(metadata)
    ]


def with_metadata(rows: Q, filters: Mapping[str, Any], attributes: type[Attribute], of: str) -> Q:
    """Return the rows with metadata that fulfil the filters.

    Args:
        of: the column of the attributes that refers to the row.
    """
    for condition in parse_filters(filters):
        rows = rows.filter(fulfilling(condition, attributes, of))
    return rows


def fulfilling(condition: Condition, attributes: type[Attribute], of: str) -> models.Q:
    """Return the query of the rows that fulfil a condition."""
    matches = models.Q(pk__in=matching_attributes(condition, attributes).values(of))
    return ~matches if condition.operator in ("missing", "ne") else matches


def matching_attributes(
    condition: Condition, attributes: type[Attribute]
) -> "models.QuerySet[Any]":
    """Return the attributes that fulfil a condition, or its opposite, read by a b-tree."""
    rows = attributes._default_manager.filter(key=condition.key)
    if condition.operator in ("exists", "missing"):
        return rows
    if condition.operator not in ("in", "ne"):
        (bound,) = condition.values
        column = "number" if bound.kind == "number" else "text"
        return rows.filter(
            kind=bound.kind, **{f"{column}__{condition.operator}": getattr(bound, column)}
        )
    is_one_of = models.Q(number__in=[v.number for v in condition.values if v.kind == "number"])
    for kind in ("text", "literal"):
        texts = [value.text for value in condition.values if value.kind == kind]
        is_one_of |= models.Q(kind=kind, text__in=texts)
    return rows.filter(is_one_of)
