"""Column types that Django lacks."""

import hashlib
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.expressions import DatabaseDefault
from pgvector.django import HnswIndex


class IdentityField(models.BigIntegerField):
    """A bigint that Postgres generates, in a table with another primary key.

    Read after an insert, never written: GENERATED ALWAYS refuses given values.
    """

    db_returning = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["editable"] = False
        kwargs["blank"] = True
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        name, path, args, kwargs = super().deconstruct()
        del kwargs["editable"], kwargs["blank"]
        return name, path, list(args), kwargs

    def db_type_suffix(self, connection: BaseDatabaseWrapper) -> str:
        return "GENERATED ALWAYS AS IDENTITY"

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        return DatabaseDefault(models.Value(None), output_field=self)


class Packed(models.Func):
    """Columns in Postgres' binary format, concatenated: see `pack_columns`."""

    template = "%(expressions)s"
    arg_joiner = " || "


def pack_columns(**send_functions: str) -> Packed:
    """Return the expression of a generated column that concatenates others in binary format.

    Args:
        send_functions: for each column, in order, the send function of its type.
    """
    return Packed(*(models.Func(name, function=send) for name, send in send_functions.items()))


class RealField(models.FloatField):
    """A four-byte float, for tables with many rows, where six digits are enough."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "real"


def vector_index(name: str) -> HnswIndex:
    """Return the index of the column `embedding`, by cosine."""
    options: dict[str, Any] = {"fields": ["embedding"], "opclasses": ["vector_cosine_ops"]}
    return HnswIndex(name=name, m=16, ef_construction=64, **options)


def digest(text: str) -> bytes:
    """Return the digest of a text that is too long for a b-tree."""
    return hashlib.sha256(text.encode()).digest()


class DigestField(models.BinaryField):
    """The digest of another field, set on every save: an index finds equal texts with it."""

    def __init__(self, source: str, **kwargs: Any) -> None:
        self.source = source
        super().__init__(**kwargs)

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        name, path, args, kwargs = super().deconstruct()
        return name, path, [self.source, *args], kwargs

    def pre_save(self, model_instance: models.Model, add: bool) -> bytes:
        value = digest(getattr(model_instance, self.source))
        setattr(model_instance, self.attname, value)
        return value
