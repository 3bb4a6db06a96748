"""Column types that Django lacks, and vectors: their literals, and the search for the nearest."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import psycopg
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.expressions import DatabaseDefault
from pgvector import Vector
from pgvector.django import CosineDistance, HnswIndex
from pgvector.psycopg.vector import VectorBinaryDumper, VectorDumper

from memory import conf
from tenants import transaction
from tenants.context import tenant_connection


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


# --- Vectors -------------------------------------------------------------------------------------

# One template for a whole vector is faster than formatting each number. Nine digits are enough for
# single precision.
_LITERAL: Final = f"[{','.join(['%.9g'] * conf.EMBEDDING_DIMENSIONS)}]"


def vector_literal(vector: np.ndarray[Any, Any] | list[float]) -> str:
    """Return a vector of 384 numbers in pgvector's syntax."""
    return _LITERAL % tuple(vector if isinstance(vector, list) else vector.tolist())


def vectors_literal(vectors: Iterable[np.ndarray[Any, Any]]) -> str:
    """Return vectors in Postgres' syntax of a vector[]."""
    quoted = '","'.join(map(vector_literal, vectors))
    return f'{{"{quoted}"}}' if quoted else "{}"


def array_literal(values: Iterable[float]) -> str:
    """Return numbers or booleans in Postgres' array syntax: psycopg would convert each
    separately.
    """
    return f"{{{','.join(map(str, values))}}}"


def dump_vectors_as_binary() -> None:
    """Register a binary dumper of `pgvector.Vector` with psycopg.

    pgvector registers its types on a connection, and queries their OIDs, which statements with
    `::vector` do not need. Call it before the first connection.
    """
    psycopg.adapters.register_dumper(Vector, VectorDumper)
    psycopg.adapters.register_dumper(Vector, VectorBinaryDumper)


def nearest(rows: models.QuerySet[Any], vector: Sequence[float], limit: int) -> list[Any]:
    """Return the rows with the nearest `embedding`, best first; `score` is the cosine similarity.

    Up to EXACT_ROWS rows are compared; of more, HNSW finds candidates. Of equally near rows the
    newest comes first.
    """
    distance = CosineDistance("embedding", vector)
    if rows[: conf.EXACT_ROWS + 1].count() > conf.EXACT_ROWS:
        candidates = max(limit * conf.HNSW_CANDIDATES_PER_ROW, conf.HNSW_EF_SEARCH)
        settings = {
            "hnsw.iterative_scan": "relaxed_order",
            "hnsw.ef_search": str(conf.HNSW_EF_SEARCH),
            "hnsw.max_scan_tuples": str(conf.HNSW_MAX_SCAN_TUPLES),
            # Without sorts, only the index has the order.
            "enable_sort": "off",
        }
        with (
            transaction.atomic(savepoint=False),
            tenant_connection().local_settings(settings),
        ):
            near = [*rows.order_by(distance).values_list("pk", flat=True)[:candidates]]
        # With fewer rows than requested, the index scan ended before it had read all rows.
        if len(near) == candidates:
            rows = rows.filter(pk__in=near)
    # "+ 0.0" hides the distance from the planner, which would use HNSW for any number of rows, and
    # find only rows among the nearest of all users.
    ordered = rows.annotate(score=1.0 - distance).order_by(distance + 0.0, "-created_at", "pk")
    return [*ordered[:limit]]
