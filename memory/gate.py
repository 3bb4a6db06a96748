"""The gate: how probable it is that a memory answers the question, from the signs that found it.

A logistic regression. Pure; its coefficients are here and nowhere else.
"""

import math
from dataclasses import dataclass, fields
from typing import Final


@dataclass(frozen=True, slots=True)
class Signs:
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
    scarcity: float = 0.0

    def probability(self, signs: Signs) -> float:
        """That the memory is relevant, from 0 to 1."""
        logit = self.bias + sum(getattr(self, sign) * getattr(signs, sign) for sign in SIGN_NAMES)
        # Beyond this, exp() of a double overflows.
        return 1 / (1 + math.exp(-max(-700.0, min(700.0, logit))))


SIGN_NAMES: Final = tuple(sign.name for sign in fields(Signs))

# Fitted by `manage.py refit_gate` on LoCoMo's dialogues 0-3: every question against its own
# dialogue, and the others with and without the names swapped. docs/recall.md has the curve.
HYBRID: Final = Gate(
    bias=-10.56,
    cosine=5.915,
    lexical=1.233,
    coverage=1.889,
    subject=0.652,
    words=0.3,
    time=0.472,
    unknown=-2.168,
    gap=-1.71,
    scarcity=0.35,
)
# The same for ranking by vectors alone, of which it may look at nothing else.
VECTOR: Final = Gate(bias=-8.0, cosine=9.0, gap=-8.0)

GATES: Final = {"hybrid": HYBRID, "vector": VECTOR}
