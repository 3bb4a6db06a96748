"""The gate: how probable it is that a memory answers the question, from the signs that found it.

A logistic regression. Pure; its coefficients are here and nowhere else.
"""

import math
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Signs:
    """What the ranking knows of one memory and its question."""

    cosine: float
    """Best cosine of the memory's sentences."""
    lexical: float
    """Words in common, weighed by rarity and context."""
    coverage: float
    """Share of the question's rarity that the memory and its context hold."""
    session: float
    """Mean of the three best messages of its conversation."""
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
    best_cosine: float
    """Best cosine of the whole scope."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One coefficient for every sign, and the bias."""

    bias: float
    cosine: float = 0
    lexical: float = 0
    coverage: float = 0
    session: float = 0
    subject: float = 0
    words: float = 0
    time: float = 0
    unknown: float = 0
    gap: float = 0
    best_cosine: float = 0

    def probability(self, signs: Signs) -> float:
        """That the memory is relevant, from 0 to 1."""
        logit = self.bias + sum(
            getattr(self, sign.name) * getattr(signs, sign.name) for sign in fields(Signs)
        )
        # Beyond this, exp() of a double overflows.
        return 1 / (1 + math.exp(-max(-700.0, min(700.0, logit))))


# Fitted by `manage.py refit_gate` on LoCoMo's dialogues 0-3: every question against its own dialogue,
# and against the other three with and without the names swapped. docs/recall.md has the curve.
HYBRID = Gate(
    bias=-11.167,
    cosine=5.941,
    lexical=1.249,
    coverage=1.706,
    session=-0.183,
    subject=0.918,
    words=0.339,
    time=0.544,
    unknown=-1.252,
    gap=-2.072,
    best_cosine=1.253,
)

# For ranking by vectors alone: whether a memory is relevant, from its best cosine.
VECTOR = Gate(bias=-9.5, cosine=8.0, best_cosine=2.0)

GATES = {"hybrid": HYBRID, "vector": VECTOR}
