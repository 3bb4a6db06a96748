"""BM25F: what a word is worth in a message, by how often it is said there and around it. Pure.

Each function takes numbers, or arrays of them.
"""

from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

Numbers = TypeVar("Numbers", float, NDArray[np.float64])

# The average length is a constant, and earlier turns count with such shares: the one before, then
# the two before that. Measured in docs/measurements.md.
K1: Final = 0.6
B: Final = 0.3
AVERAGE_LENGTH: Final = 32
CONTEXT_WEIGHTS: Final = (0.5, 0.25, 0.25)


def saturated(frequency: Numbers, length: Numbers) -> Numbers:
    """The weight of a word that is said so often in so many words."""
    return frequency * (1 + K1) / (frequency + _damping(length))


def frequency_of(weight: Numbers, length: Numbers) -> Numbers:
    """How often a word is said that has this weight in so many words."""
    return weight * _damping(length) / (1 + K1 - weight)


def _damping(length: Numbers) -> Numbers:
    return K1 * (1 - B + B * length / AVERAGE_LENGTH)
