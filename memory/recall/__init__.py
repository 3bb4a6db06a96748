"""Recall: what an agent finds for a question, by evidence, score and gate, and why."""

from memory.recall.evidence import Exclusion
from memory.recall.service import (
    MAX_CUT,
    AdjacentTurn,
    Cut,
    FactHit,
    Hit,
    RecallResult,
    arecall,
    recall,
)

__all__ = [
    "MAX_CUT",
    "AdjacentTurn",
    "Cut",
    "Exclusion",
    "FactHit",
    "Hit",
    "RecallResult",
    "arecall",
    "recall",
]
