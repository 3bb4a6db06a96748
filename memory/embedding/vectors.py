"""Vectors on their way into Postgres."""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import psycopg
from pgvector import Vector
from pgvector.psycopg.vector import VectorBinaryDumper, VectorDumper

from memory.conf import EMBEDDING_DIMENSIONS

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
