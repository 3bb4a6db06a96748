"""Vectors in Postgres: their literals, and searches with the HNSW index."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import psycopg
from pgvector import Vector
from pgvector.psycopg.vector import VectorBinaryDumper, VectorDumper

from memory.conf import EMBEDDING_DIMENSIONS, HNSW_EF_SEARCH, HNSW_MAX_SCAN_TUPLES
from tenants import transaction
from tenants.context import tenant_connection

# One template for a whole vector is filled in faster than each number by itself. Nine digits are
# all that a number of single precision has.
_LITERAL: Final = f"[{','.join(['%.9g'] * EMBEDDING_DIMENSIONS)}]"


def vector_literal(vector: np.ndarray[Any, Any] | list[float]) -> str:
    """A vector of 384 numbers as pgvector reads it."""
    return _LITERAL % tuple(vector if isinstance(vector, list) else vector.tolist())


def vectors_literal(vectors: Iterable[np.ndarray[Any, Any]]) -> str:
    """Vectors as Postgres reads a vector[]."""
    quoted = '","'.join(map(vector_literal, vectors))
    return f'{{"{quoted}"}}' if quoted else "{}"


def array_literal(values: Iterable[float]) -> str:
    """Numbers or truth values as Postgres reads an array: psycopg takes each by itself."""
    return f"{{{','.join(map(str, values))}}}"


def send_vectors_in_binary() -> None:
    """Let psycopg send a `pgvector.Vector` as it is, where Postgres binds the values.

    pgvector registers its types on a connection, and asks for their numbers. Where a statement
    says `::vector` no number is needed. To be called before the first connection is made.
    """
    psycopg.adapters.register_dumper(Vector, VectorDumper)
    psycopg.adapters.register_dumper(Vector, VectorBinaryDumper)


@contextmanager
def walking_hnsw() -> Iterator[None]:
    """Do the block's one query, a read ordered by distance, through the HNSW index.

    It goes on until enough rows of the scope were met, or `HNSW_MAX_SCAN_TUPLES` rows of anybody.
    The settings leave no trace in an outer transaction.
    """
    with transaction.atomic():
        tenant_connection().set_local(
            {
                "hnsw.iterative_scan": "relaxed_order",
                "hnsw.ef_search": str(HNSW_EF_SEARCH),
                "hnsw.max_scan_tuples": str(HNSW_MAX_SCAN_TUPLES),
                # Without sorts only the index has the order, and the planner no other choice.
                "enable_sort": "off",
            }
        )
        yield
        transaction.set_rollback(True)
