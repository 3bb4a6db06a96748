"""Columns that many tables have. Their default is the same in Python and in Postgres.

Postgres fills in columns for rows that SQL statements and processes of the version before insert.
The name for people and the keyword arguments are those of the Django field.
"""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models.expressions import Combinable

# An unset setting is NULL, a RESET one is "": both mean that there is no tenant.
CURRENT_TENANT = "NULLIF(current_setting('app.current_tenant', true), '')::uuid"
# The sub-select makes Postgres evaluate it once per statement and not once per row.
IS_CURRENT_TENANT = f"tenant_id = (SELECT {CURRENT_TENANT})"


class CurrentTenant(models.Func):
    """The tenant of the Postgres session; NULL outside of tenants."""

    template = CURRENT_TENANT
    arity = 0
    output_field = models.UUIDField()


def random_id(**options: Any) -> "models.UUIDField[str | uuid.UUID, uuid.UUID]":
    """Return a primary key: a random UUID."""
    return models.UUIDField(
        primary_key=True, default=uuid.uuid4, db_default=RandomUUID(), editable=False, **options
    )


def optional_id(
    name: Any = None, **options: Any
) -> "models.UUIDField[str | uuid.UUID | None, uuid.UUID | None]":
    """Return a column of UUIDs that may be empty."""
    return models.UUIDField(name, null=True, blank=True, **options)


def optional_text(name: Any = None, **options: Any) -> "models.TextField[str | Combinable, str]":
    """Return a column of text, by default the empty text."""
    return models.TextField(name, blank=True, default="", db_default="", **options)


def optional_char(name: Any = None, **options: Any) -> "models.CharField[str | Combinable, str]":
    """Return a column of at most `max_length` characters, by default the empty text."""
    return models.CharField(name, blank=True, default="", db_default="", **options)


def optional_time(
    name: Any = None, **options: Any
) -> "models.DateTimeField[datetime | Combinable | None, datetime | None]":
    """Return a column of times that may be empty."""
    return models.DateTimeField(name, null=True, blank=True, **options)


def optional_number(
    name: Any = None, **options: Any
) -> "models.PositiveIntegerField[int | Combinable | None, int | None]":
    """Return a column of numbers from 0 that may be empty."""
    return models.PositiveIntegerField(name, null=True, blank=True, **options)


def optional_small_number(
    name: Any = None, **options: Any
) -> "models.PositiveSmallIntegerField[int | Combinable | None, int | None]":
    """Return a column of numbers from 0 to 32,767 that may be empty."""
    return models.PositiveSmallIntegerField(name, null=True, blank=True, **options)


def count(name: Any = None, **options: Any) -> "models.PositiveIntegerField[int | Combinable, int]":
    """Return a column of numbers that begin at 0."""
    return models.PositiveIntegerField(name, default=0, db_default=0, **options)


def big_count(
    name: Any = None, **options: Any
) -> "models.PositiveBigIntegerField[int | Combinable, int]":
    """Return a column of numbers that begin at 0 and may exceed 32 bits."""
    return models.PositiveBigIntegerField(name, default=0, db_default=0, **options)


def choice(
    default: models.TextChoices, name: Any = None, **options: Any
) -> "models.TextField[str | Combinable, str]":
    """Return a column of text, one of the choices of the default."""
    return models.TextField(
        name, choices=type(default), default=default, db_default=default, **options
    )


def number(
    default: int, name: Any = None, **options: Any
) -> "models.PositiveIntegerField[int | Combinable, int]":
    """Return a column of numbers from 0."""
    return models.PositiveIntegerField(name, default=default, db_default=default, **options)


def money(*, max_digits: int, **options: Any) -> Any:
    """Return a column of amounts that begin at 0, with six decimal places."""
    return models.DecimalField(
        max_digits=max_digits, decimal_places=6, default=0, db_default=0, **options
    )


def flag(
    name: Any = None, *, default: bool, **options: Any
) -> "models.BooleanField[bool | Combinable, bool]":
    """Return a column of truth values."""
    return models.BooleanField(name, default=default, db_default=default, **options)


def json_object(name: Any = None, **options: Any) -> "models.JSONField[Any, Any]":
    """Return a column of JSON, by default an empty object."""
    empty = models.Value({}, output_field=models.JSONField())
    return models.JSONField(name, default=dict, db_default=empty, **options)


def json_list(name: Any = None, **options: Any) -> "models.JSONField[Any, Any]":
    """Return a column of JSON, by default an empty list."""
    empty = models.Value([], output_field=models.JSONField())
    return models.JSONField(name, default=list, db_default=empty, **options)


def text_list(**options: Any) -> "ArrayField[Sequence[str] | Combinable, list[str]]":
    """Return a column of lists of texts, by default an empty list."""
    empty = models.Value([], output_field=ArrayField(models.TextField()))
    return ArrayField(models.TextField(), default=list, db_default=empty, **options)


def id_list(
    verbose_name: str | None = None, **options: Any
) -> "ArrayField[Sequence[uuid.UUID] | Combinable, list[uuid.UUID]]":
    """Return a column of lists of UUIDs, by default an empty list."""
    empty = models.Value([], output_field=ArrayField(models.UUIDField()))
    return ArrayField(
        models.UUIDField(), verbose_name=verbose_name, default=list, db_default=empty, **options
    )


def index_if_set(field: str, name: str) -> models.Index:
    """Return the index of the rows in which an optional column has a value."""
    return models.Index(fields=[field], condition=models.Q((f"{field}__isnull", False)), name=name)


def one_of(field: str, choices: type[models.TextChoices], name: str) -> models.CheckConstraint:
    """Return the constraint that a column has one of the choices."""
    return models.CheckConstraint(condition=models.Q((f"{field}__in", choices.values)), name=name)
