"""Schemas of exports: what they ask for, and what of it memories fill by themselves.

A part of JSON Schema is read: what Pydantic and zod write of plain models. Keywords whose check
takes long are not, such as `pattern`. No I/O.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from konstruct.interfaces.mem0.filters import ENTITIES
from konstruct.strict_json import NotStrictJSON, read_json
from memory.exceptions import InvalidArgument

# Under which names schemas ask for what of a memory, and of which type it is.
FIELDS: Final = {
    **dict.fromkeys(("id", "memory_id"), ("id", "string")),
    **dict.fromkeys(("memory", "content", "text"), ("memory", "string")),
    **{
        name: (name, "string")
        for name in ("user_id", "agent_id", "app_id", "run_id", "created_at", "updated_at",
                     "timestamp", "expiration_date")
    },
    "metadata": ("metadata", "object"),
    "categories": ("categories", "array"),
}  # fmt: skip
# A list of texts of such a name is a list of memories; `skills` is none.
_TEXTS: Final = ("memories", "facts", "results")
UNNAMED: Final = "(an object without properties)"
LARGEST_SCHEMA: Final = 16_384
MOST_PARTS: Final = 1_000
DEEPEST: Final = 32
MOST_TOLD: Final = 5

_INNER: Final = ("items", "additionalProperties")
_LISTS: Final = ("anyOf", "oneOf", "allOf")
_MAPS: Final = ("properties", "$defs", "definitions")
_READ: Final = frozenset({
    *_INNER, *_LISTS, *_MAPS, "$ref", "$schema", "$comment", "type", "title", "description",
    "default", "examples", "enum", "const", "format", "required", "deprecated", "readOnly",
    "writeOnly", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "minItems", "maxItems",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExportSchema:
    """A schema that can be read: `document` is its JSON."""

    document: Mapping[str, Any]

    @property
    def lacking(self) -> list[str]:
        """Fields that no memory has, such as `full_name`, or that have another type there."""
        core = self._core(self.document)
        if self._is_list_of_memories("memories", core):
            return self._lacking_of_memory(core["items"], "[].")
        lists = self._lists(core)
        if not lists:
            return self._lacking_of_memory(core, "")
        lacking = []
        for name, inner in core["properties"].items():
            if name in lists:
                lacking += self._lacking_of_memory(lists[name]["items"], f"{name}[].")
            elif name not in ENTITIES or not self._allows(inner, "string"):
                lacking.append(name)
        return lacking

    def filled(self, memories: Sequence[Mapping[str, Any]], whose: Mapping[str, str]) -> Any:
        """What is asked for, of memories as JSON; a schema of one memory gives `results`.

        Only if nothing is lacking. `whose`: the user, agent, app and run of all of them.
        """
        core = self._core(self.document)
        if self._is_list_of_memories("memories", core):
            return [self._memory(core["items"], each) for each in memories]
        lists = self._lists(core)
        if not lists:
            return {"results": [self._memory(core, each) for each in memories]}
        return {
            name: (
                [self._memory(lists[name]["items"], each) for each in memories]
                if name in lists
                else whose.get(name)
            )
            for name in core["properties"]
            if name in lists or name in whose or name in core.get("required", ())
        }

    def misfits(self, value: Any) -> list[str]:
        """How a value differs from the schema, each with its place; the first few."""
        return list(islice(self._misfits(value), MOST_TOLD))

    def misfits_of_filled(self, value: Any) -> list[str]:
        """The same of what `filled` returned."""
        core = self._core(self.document)
        if self._is_list_of_memories("memories", core) or self._lists(core):
            return self.misfits(value)
        told = (
            f"results[{number}]{each}"
            for number, row in enumerate(value["results"])
            for each in self._misfits(row)
        )
        return list(islice(told, MOST_TOLD))

    def _misfits(self, value: Any) -> Iterator[str]:
        for error in Draft202012Validator(self.document).iter_errors(value):
            yield f"{error.json_path.removeprefix('$')}: {error.message[:200]}"

    def _core(self, schema: Any) -> Any:
        """The schema itself, behind references and beside null; {} for one of several."""
        while isinstance(schema, Mapping):
            if "$ref" in schema:
                schema = _referred(self.document, schema["$ref"])
                continue
            choices = [each for name in _LISTS for each in schema.get(name, ())]
            if not choices:
                return schema
            choices = [each for each in choices if self._core(each).get("type") != "null"]
            if len(choices) != 1:
                return {}
            schema = choices[0]
        return {}

    def _lists(self, core: Mapping[str, Any]) -> dict[str, Any]:
        """Those of an object's properties that are lists of memories."""
        cores = {name: self._core(each) for name, each in core.get("properties", {}).items()}
        return {name: each for name, each in cores.items() if self._is_list_of_memories(name, each)}

    def _is_list_of_memories(self, name: str, core: Mapping[str, Any]) -> bool:
        items = self._core(core.get("items"))
        return (name in _TEXTS and items.get("type") == "string") or any(
            FIELDS.get(each, ("",))[0] in ("id", "memory") for each in items.get("properties", ())
        )

    def _lacking_of_memory(self, schema: Any, place: str) -> list[str]:
        core = self._core(schema)
        if core.get("type") == "string" and place:
            return []
        properties = core.get("properties", {})
        if not properties:
            return [f"{place}{UNNAMED}"]
        return [
            f"{place}{name}"
            for name, inner in properties.items()
            if name not in FIELDS or not self._allows(inner, FIELDS[name][1])
        ]

    def _allows(self, schema: Any, type_: str) -> bool:
        if not isinstance(schema, Mapping):
            return schema is True
        if "$ref" in schema:
            return self._allows(_referred(self.document, schema["$ref"]), type_)
        if choices := [each for name in _LISTS for each in schema.get(name, ())]:
            return any(self._allows(each, type_) for each in choices)
        types = schema.get("type", type_)
        return type_ in ([types] if isinstance(types, str) else types)

    def _memory(self, schema: Any, memory: Mapping[str, Any]) -> Any:
        """A memory as an item of the schema; what it has not is left out where it may be."""
        core = self._core(schema)
        if core.get("type") == "string":
            return memory["memory"]
        filled = {}
        for name, inner in core["properties"].items():
            value = memory.get(FIELDS[name][0])
            if value is not None or name in core.get("required", ()) or self._allows(inner, "null"):
                filled[name] = value
        return filled


def read_schema(sent: Any) -> ExportSchema:
    """Read a schema: an object, or its JSON as a text.

    Raises:
        InvalidArgument: it is none, or cannot be read here; the message names what.
    """
    if isinstance(sent, str):
        try:
            sent = read_json(sent)
        except NotStrictJSON as error:
            raise InvalidArgument(f"schema is not JSON: {error}") from None
    if not isinstance(sent, Mapping) or not sent:
        raise InvalidArgument(
            "schema is no JSON schema; give an object with properties, such as"
            " {'type': 'object', 'properties': {'memory': {'type': 'string'}}}"
        )
    if len(json.dumps(sent)) > LARGEST_SCHEMA:
        raise InvalidArgument(f"schema has more than {LARGEST_SCHEMA:,} characters of JSON")
    parts = _check(sent, sent, ("schema",), ())
    if sum(1 for _ in islice(parts, MOST_PARTS + 1)) > MOST_PARTS:
        raise InvalidArgument(f"schema has more than {MOST_PARTS} parts, references followed")
    try:
        Draft202012Validator.check_schema(sent)
    except SchemaError as error:
        place = error.json_path.removeprefix("$")[:200]
        raise InvalidArgument(f"schema{place} cannot be so: {error.message[:200]}") from None
    return ExportSchema(sent)


def _check(
    root: Mapping[str, Any], schema: Any, place: tuple[str, ...], through: tuple[str, ...]
) -> Iterator[None]:
    """Go through all parts, references followed; raises InvalidArgument for what is not read."""
    yield
    if len(place) > DEEPEST:
        raise InvalidArgument(f"schema is nested deeper than {DEEPEST} levels")
    if not isinstance(schema, Mapping):
        return
    for name in schema:
        if name not in _READ:
            raise InvalidArgument(
                f"{'.'.join(place)} has {name[:80]!r}, which is not read here; leave it out."
                f" Read are: {', '.join(sorted(_READ))}"
            )
    if "$ref" in schema:
        reference = str(schema["$ref"])
        if reference in through:
            raise InvalidArgument(f"{'.'.join(place)} refers to itself by {reference[:80]!r}")
        yield from _check(root, _referred(root, reference), (*place, "$ref"), (*through, reference))
    inner: list[tuple[tuple[str, ...], Any]]
    inner = [((name,), schema[name]) for name in _INNER if name in schema]
    for name in _LISTS:
        if isinstance(choices := schema.get(name), list):
            inner += [((name, str(number)), each) for number, each in enumerate(choices)]
    for name in _MAPS:
        if isinstance(members := schema.get(name), Mapping):
            inner += [((name, member[:80]), each) for member, each in members.items()]
    for names, each in inner:
        yield from _check(root, each, (*place, *names), through)


def _referred(root: Mapping[str, Any], reference: Any) -> Any:
    """The definition that a reference names."""
    begin, _, name = str(reference).rpartition("/")
    known = begin in ("#/$defs", "#/definitions")
    definitions = root.get(begin.removeprefix("#/")) if known else None
    if not isinstance(definitions, Mapping) or name not in definitions:
        raise InvalidArgument(
            f"schema refers to {str(reference)[:80]!r}, which is not there; refer to '#/$defs/…'"
        )
    return definitions[name]
