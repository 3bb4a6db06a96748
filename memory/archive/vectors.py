"""Vectors on their way into SQLite and out of it: checked, in single precision. Pure."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from memory.exceptions import InvalidArgument

# What sqlite-vec reads.
FLOAT = np.dtype("<f4")


def vector_bytes(name: str, vector: ArrayLike, dimensions: int) -> bytes:
    """One vector as sqlite-vec takes it."""
    return batch_bytes([vector], dimensions, names=lambda _: name)[0]


def batch_bytes(
    vectors: Iterable[ArrayLike],
    dimensions: int,
    *,
    names: Callable[[int], str] = "vectors[{}]".format,
) -> list[bytes]:
    """Vectors as sqlite-vec takes them; a batch is checked at once, which a loop would make slow.

    Raises:
        InvalidArgument: which vector cannot be stored, and why: it is not a flat list of
            `dimensions` finite numbers, or it has no direction that could be compared.
    """
    if not isinstance(vectors, Iterable):
        raise InvalidArgument(f"{vectors!r} is not a list of vectors")
    rows = vectors if isinstance(vectors, np.ndarray) else list(vectors)
    if len(rows) == 0:
        return []
    try:
        array = np.asarray(rows)
    except ValueError:
        raise _refusal(rows, dimensions, names) from None
    if array.ndim != 2 or array.shape[1] != dimensions or array.dtype.kind not in "fiu":
        raise _refusal(rows, dimensions, names)
    with np.errstate(all="ignore"):
        single = np.ascontiguousarray(array, dtype=FLOAT)
        # sqlite-vec sums in single precision: what overflows or vanishes there has no direction.
        lengths = np.einsum("ij,ij->i", single, single)
    wrong = np.flatnonzero(~((lengths > 0) & np.isfinite(lengths)))
    if wrong.size:
        row = int(wrong[0])
        infinite = np.flatnonzero(~np.isfinite(single[row]))
        if infinite.size:
            column = int(infinite[0])
            raise InvalidArgument(
                f"{names(row)}[{column}]={array[row, column]} is not a finite number"
            )
        raise InvalidArgument(
            f"{names(row)} has no direction: its squared length is {lengths[row]}"
        )
    return [row.tobytes() for row in single]


def vector_of(blob: bytes) -> tuple[float, ...]:
    """The numbers of a stored vector."""
    return tuple(np.frombuffer(blob, dtype=FLOAT).tolist())


def _refusal(rows: Iterable[Any], dimensions: int, names: Callable[[int], str]) -> InvalidArgument:
    """What is wrong with the first vector that is not a flat list of `dimensions` numbers."""
    for number, row in enumerate(rows):
        try:
            array = np.asarray(row)
        except ValueError:
            return InvalidArgument(f"{names(number)} is not a flat list of numbers")
        if array.ndim != 1 or (array.size and array.dtype.kind not in "fiu"):
            return InvalidArgument(f"{names(number)}={str(row)[:80]} is not a flat list of numbers")
        if array.size != dimensions:
            return InvalidArgument(f"{names(number)} has {array.size} dimensions, not {dimensions}")
    return InvalidArgument("the vectors are not a list of lists of numbers")
