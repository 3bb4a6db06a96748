"""The values of a row before and after a change, for the logs.

Values of secrets are left out: the logs have only the names of secrets that changed. The access log
of a tenant treats texts in the same way, because they may name or quote people: it has numbers,
times, ids of rows, and words that the code chooses.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Any, Final
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Manager, Model

# The length to which questions and search terms are cut.
MAX_TEXT_CHARACTERS: Final = 500
_TYPED_FIELDS: Final = (
    models.BooleanField, models.IntegerField, models.FloatField, models.DecimalField,
    models.DateField, models.DurationField, models.UUIDField,
)  # fmt: skip
_TYPES: Final = (bool, int, float, UUID, datetime, date, timedelta, Enum)
# Matched as parts of field names, so that future secret fields are left out too.
SECRET_WORDS: Final = frozenset({"password", "secret", "token", "digest"})
# Fields that are computed from others, or that mean nothing to people.
UNLOGGED_FIELDS: Final = frozenset(
    {"tenant_id", "embedding", "quantized", "embedding_model", "migrated_to", "last_login"}
)


# Names of details whose values are words of the code.
WORDS: Final = frozenset(
    {"attempted", "command", "decision", "format", "invited", "model", "outcome", "scope", "state"}
    | {"tool", "way", "withheld", "zone"}
)


@dataclass(frozen=True)
class RowState:
    """A row's values at one time."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    # Never written: used to detect whether a secret changed.
    secrets: Mapping[str, Any] = field(default_factory=dict, repr=False)
    # Of the fields, those whose values the access log of a tenant leaves out.
    texts: frozenset[str] = frozenset()


NO_STATE: Final = RowState()


def row_state(row: Model | None, *, many: bool = False) -> RowState:
    """Return the row's current values. Without deferred and `unlogged_fields`.

    Columns of text are noted as `texts`, except those with choices and the `logged_words` of the
    model.

    Args:
        row: the row; None for no values.
        many: add the names of many-to-many relations, which takes queries.
    """
    if row is None:
        return NO_STATE
    values, secrets, texts = {}, {}, set()
    words = getattr(row, "logged_words", ())
    omitted = row.get_deferred_fields() | UNLOGGED_FIELDS | getattr(row, "unlogged_fields", set())
    for model_field in row._meta.concrete_fields:
        if model_field.attname in omitted or model_field.generated:
            continue
        value = getattr(row, model_field.attname)
        if is_secret(model_field.name):
            secrets[model_field.name] = value
        elif not hasattr(value, "resolve_expression"):
            values[model_field.attname] = _to_json(value)
            if not (_is_typed(model_field) or model_field.name in words):
                texts.add(model_field.attname)
    if many:
        for relation in row._meta.many_to_many:
            related: Manager[Model] = getattr(row, relation.name)
            values[relation.name] = sorted(str(related_row) for related_row in related.all())
    return RowState(values, secrets, frozenset(texts))


def loggable(name: str, value: Any) -> Any:
    """Return a detail for the access log of a tenant, without texts that a client may have sent.

    Args:
        name: the name of the detail. A text is kept if the name is in WORDS.
        value: the value. Names in a mapping are names in the code.
    """
    if isinstance(value, Mapping):
        items = ((key, loggable(key, item)) for key, item in value.items())
        return {str(key): item for key, item in items if item is not None} or None
    if isinstance(value, list | tuple | set):
        return [item for each in value if (item := loggable(name, each)) is not None] or None
    if isinstance(value, _TYPES) or name in WORDS:
        return _to_json(value)
    return None


def logged_changes(before: RowState | None, after: RowState | None) -> dict[str, Any]:
    """Return the fields that differ, for the access log of a tenant: of texts only the names."""
    old, new = before or NO_STATE, after or NO_STATE
    texts = old.texts | new.texts
    return differences(_without_texts(old, texts), _without_texts(new, texts))


def _without_texts(state: RowState, texts: frozenset[str]) -> RowState:
    if not state.fields:
        return state
    fields = {name: value for name, value in state.fields.items() if name not in texts}
    hidden = {name: state.fields.get(name) for name in sorted(texts)}
    return RowState(fields, {**hidden, **state.secrets})


def _is_typed(model_field: Any) -> bool:
    """Return whether a column has numbers, times or ids of rows, and never a text."""
    while model_field.is_relation:
        model_field = model_field.target_field
    if isinstance(model_field, ArrayField):
        model_field = model_field.base_field
    return bool(model_field.choices) or isinstance(model_field, _TYPED_FIELDS)


def is_secret(name: str) -> bool:
    """Return whether the value of a field with this name is a secret."""
    return not SECRET_WORDS.isdisjoint(name.split("_"))


def differences(before: RowState, after: RowState) -> dict[str, Any]:
    """Return the fields that differ as `before` and `after`, and `withheld`: names of secrets.

    A new row has no `before`, a deleted one no `after`; empty fields of these are left out.
    """
    names = [
        name
        for name in {**before.fields, **after.fields}
        if before.fields.get(name) != after.fields.get(name)
    ]
    is_change = before is not NO_STATE and after is not NO_STATE
    result: dict[str, Any] = {}
    for key, state in (("before", before), ("after", after)):
        if names and state is not NO_STATE:
            values = {name: state.fields.get(name) for name in names}
            empty: tuple[Any, ...] = () if is_change else (None, "", [], {})
            result[key] = {name: value for name, value in values.items() if value not in empty}
    withheld = [name for name in after.secrets if before.secrets.get(name) != after.secrets[name]]
    return {**result, "withheld": withheld} if is_change and withheld else result


def abridge(value: Any) -> Any:
    """Return the parameters with long texts cut."""
    if isinstance(value, str):
        value = storable(value)
        return value if len(value) <= MAX_TEXT_CHARACTERS else value[:MAX_TEXT_CHARACTERS] + "…"
    if isinstance(value, dict):
        return {abridge(name): abridge(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [abridge(item) for item in value]
    return value


def storable(text: str) -> str:
    """Return the text without NUL and lone surrogates, which Postgres does not store."""
    return text.replace("\0", "").encode(errors="replace").decode()


def _to_json(value: Any) -> Any:
    """Return the value as JSON represents it."""
    if isinstance(value, UUID | timedelta | Enum):
        return str(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, str):
        return storable(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(name): _to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_to_json(item) for item in value]
    return str(value)
