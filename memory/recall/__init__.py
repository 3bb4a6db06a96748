"""Recall: what an agent finds for a question, by evidence, score and gate, and why."""

from memory.recall.service import MAX_CUT, AdjacentTurn, Cut, Hit, RecallResult, arecall, recall

__all__ = ["MAX_CUT", "AdjacentTurn", "Cut", "Hit", "RecallResult", "arecall", "recall"]
