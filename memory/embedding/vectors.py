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

# One template for a whole vector is faster than formatting each number. Nine digits are enough for
# single precision.
_LITERAL: Final = f"[{','.join(['%.9g'] * EMBEDDING_DIMENSIONS)}]"


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


@contextmanager
def hnsw_scan() -> Iterator[None]:
    """Have the one query of the block, a read ordered by distance, scan the HNSW index.

    The scan ends once enough rows of the scope are found, or after `HNSW_MAX_SCAN_TUPLES` rows of
    any user. The settings are reset in an outer transaction.
    """
    settings = {
        "hnsw.iterative_scan": "relaxed_order",
        "hnsw.ef_search": str(HNSW_EF_SEARCH),
        "hnsw.max_scan_tuples": str(HNSW_MAX_SCAN_TUPLES),
        # Without sorts, only the index has the order.
        "enable_sort": "off",
    }
    with transaction.atomic(savepoint=False), tenant_connection().local_settings(settings):
        yield
