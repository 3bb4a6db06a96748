"""Recall: finds memories of an agent for a question, with scores, a gate, and the reasons."""

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
