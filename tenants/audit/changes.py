"""The values of a row before and after a change, for the logs.

Values of secrets are left out: the log has only the names of secrets that changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Manager, Model

# The length to which a changed text is cut, and how many characters before the difference are kept.
MAX_VALUE_CHARACTERS: Final = 4_000
KEPT_BEFORE: Final = 200
# The length to which questions and search terms are cut.
MAX_TEXT_CHARACTERS: Final = 500
# Matched as parts of field names, so that future secret fields are left out too.
SECRET_WORDS: Final = frozenset({"password", "secret", "token", "digest"})
# Fields that are computed from others, or that mean nothing to people.
UNLOGGED_FIELDS: Final = frozenset(
    {"tenant_id", "embedding", "quantized", "embedding_model", "migrated_to", "last_login"}
)


@dataclass(frozen=True)
class RowState:
    """A row's values at one time."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    # Never written: used to detect whether a secret changed.
    secrets: Mapping[str, Any] = field(default_factory=dict, repr=False)


NO_STATE: Final = RowState()


def row_state(row: Model | None, *, many: bool = False) -> RowState:
    """Return the row's current values. Without deferred and `unlogged_fields`.

    Args:
        row: the row; None for no values.
        many: add the names of many-to-many relations, which takes queries.
    """
    if row is None:
        return NO_STATE
    values, secrets = {}, {}
    omitted = row.get_deferred_fields() | UNLOGGED_FIELDS | getattr(row, "unlogged_fields", set())
    for model_field in row._meta.concrete_fields:
        if model_field.attname in omitted or model_field.generated:
            continue
        value = getattr(row, model_field.attname)
        if is_secret(model_field.name):
            secrets[model_field.name] = value
        elif not hasattr(value, "resolve_expression"):
            values[model_field.attname] = _to_json(value)
    if many:
        for relation in row._meta.many_to_many:
            related: Manager[Model] = getattr(row, relation.name)
            values[relation.name] = sorted(str(related_row) for related_row in related.all())
    return RowState(values, secrets)


def is_secret(name: str) -> bool:
    """Return whether the value of a field with this name is a secret."""
    return not SECRET_WORDS.isdisjoint(name.split("_"))


def differences(before: RowState, after: RowState) -> dict[str, Any]:
    """Return the fields that differ as `before` and `after`, and `withheld`: names of secrets.

    A new row has no `before`, a deleted one no `after`; empty fields of these are left out.
    """
    names = [*before.fields, *(name for name in after.fields if name not in before.fields)]
    old_values, new_values = {}, {}
    for name in names:
        old, new = before.fields.get(name), after.fields.get(name)
        if old == new:
            continue
        old_values[name], new_values[name] = _excerpts(old, new)
    result: dict[str, Any] = {}
    if before is not NO_STATE and old_values:
        result["before"] = old_values if after is not NO_STATE else _without_empty(old_values)
    if after is not NO_STATE and new_values:
        result["after"] = new_values if before is not NO_STATE else _without_empty(new_values)
    if before is not NO_STATE and after is not NO_STATE:
        withheld = [
            name for name in after.secrets if before.secrets.get(name) != after.secrets[name]
        ]
        if withheld:
            result["withheld"] = withheld
    return result


def log_detail(
    detail: Mapping[str, Any], before: RowState | None, after: RowState | None
) -> dict[str, Any]:
    """Return the detail of a log entry: the given values, abridged, and the fields that differ.

    Args:
        detail: parameters of the request or the command.
        before: the row before a change or deletion.
        after: the row after a change or creation.
    """
    abridged = {name: abridge(value) for name, value in detail.items()}
    if before is None and after is None:
        return abridged
    return abridged | differences(before or NO_STATE, after or NO_STATE)


def abridge(value: Any) -> Any:
    """Return the parameters with long texts cut."""
    if isinstance(value, str):
        value = _storable(value)
        return value if len(value) <= MAX_TEXT_CHARACTERS else value[:MAX_TEXT_CHARACTERS] + "…"
    if isinstance(value, dict):
        return {abridge(name): abridge(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [abridge(item) for item in value]
    return value


def _storable(text: str) -> str:
    """Return the text without NUL and lone surrogates, which Postgres does not store."""
    return text.replace("\0", "").encode(errors="replace").decode()


def _without_empty(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def _excerpts(old: Any, new: Any) -> tuple[Any, Any]:
    texts = [value for value in (old, new) if isinstance(value, str)]
    if not any(len(text) > MAX_VALUE_CHARACTERS for text in texts):
        return old, new
    start = 0
    if len(texts) == 2:
        pairs = zip(*texts, strict=False)
        same = next((place for place, (a, b) in enumerate(pairs) if a != b), min(map(len, texts)))
        start = max(0, same - KEPT_BEFORE)
    return _cut(old, start), _cut(new, start)


def _cut(value: Any, start: int) -> Any:
    if not isinstance(value, str):
        return value
    kept = value[start : start + MAX_VALUE_CHARACTERS]
    return f"{'…' if start else ''}{kept}{'…' if len(value) > start + MAX_VALUE_CHARACTERS else ''}"


def _to_json(value: Any) -> Any:
    """Return the value as JSON represents it."""
    if isinstance(value, UUID | timedelta):
        return str(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, str):
        return _storable(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(name): _to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_to_json(item) for item in value]
    return str(value)
