"""Vectors on their way into Postgres."""

from typing import Any, Final

import numpy as np

from memory.conf import EMBEDDING_DIMENSIONS

# One template for a whole vector is filled in faster than each number by itself. Nine digits are
# all that a number of single precision has.
_LITERAL: Final = f"[{','.join(['%.9g'] * EMBEDDING_DIMENSIONS)}]"


def vector_literal(vector: np.ndarray[Any, Any] | list[float]) -> str:
    """A vector of 384 numbers as pgvector reads it."""
    return _LITERAL % tuple(vector if isinstance(vector, list) else vector.tolist())
