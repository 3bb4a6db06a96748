"""The gate: how probable it is that a memory answers the question, from the features that found it.

A logistic regression. Pure; its coefficients are here and nowhere else.
"""

import math
from dataclasses import dataclass
from operator import attrgetter, mul
from typing import Final, NamedTuple


class GateFeatures(NamedTuple):
    """What the ranking knows of one memory and its question."""

    cosine: float
    """Best cosine of the memory's sentences."""
    lexical: float
    """Words in common, weighed by rarity and context."""
    coverage: float
    """Share of the question's rarity that the memory and its context hold."""
    subject: float
    """1 if the question names who said it, -1 if it names another, 0 if it names nobody."""
    words: float
    """ln(1 + words of the memory)."""
    time: float
    """1 if the question asks when and the memory holds a word of time."""
    unknown: float
    """Share of the question's rarity that nobody in this scope has ever said."""
    gap: float
    """Score of the best memory minus this one's."""
    mean_cosine: float
    """Of the whole scope: how near the question is to anything that is said here."""
    unknown_name: float
    """1 if the question has a name that nobody in this scope has ever said."""
    anonymous: float
    """1 if the question names no speaker by name: "my cat", not "Caroline's cat"."""
    scarcity: float
    """ln(1 + 300 / messages of the scope): where little was said, the best is the answer sooner."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One coefficient for every sign, and the bias."""

    bias: float
    cosine: float = 0.0
    lexical: float = 0.0
    coverage: float = 0.0
    subject: float = 0.0
    words: float = 0.0
    time: float = 0.0
    unknown: float = 0.0
    gap: float = 0.0
    mean_cosine: float = 0.0
    unknown_name: float = 0.0
    anonymous: float = 0.0
    scarcity: float = 0.0

    def probability(self, features: GateFeatures) -> float:
        """That the memory is relevant, from 0 to 1."""
        logit = self.bias + sum(map(mul, _coefficients(self), features))
        # Beyond this, exp() of a double overflows.
        return 1 / (1 + math.exp(-max(-700.0, min(700.0, logit))))


FEATURE_NAMES: Final = GateFeatures._fields
_coefficients = attrgetter(*FEATURE_NAMES)

# Printed by benchmarks/recall/refit_gate.py, of what gate_features.py beside it wrote: LoCoMo's
# dialogues 0-3 as they are, the same as a nameless user has them in memories of all sizes, and the
# conversations of tests/memory/data. docs/measurements.md has the curve.
HYBRID: Final = Gate(
    bias=-7.757,
    cosine=7.85,
    lexical=0.48,
    coverage=1.932,
    subject=0.567,
    words=0.019,
    time=0.326,
    unknown=-0.753,
    gap=-2.214,
    mean_cosine=-5.714,
    unknown_name=-1.53,
    anonymous=0.633,
    scarcity=0.72,
)
# The same for ranking by vectors alone, of which it may look at nothing else.
VECTOR: Final = Gate(bias=-8.0, cosine=9.0, gap=-8.0)

GATES: Final = {"hybrid": HYBRID, "vector": VECTOR}
